// SPDX-License-Identifier: Apache-2.0
/* What the agent has done and what it costs, as rows for Prometheus. */
#include <errno.h>
#include <stdio.h>

#include "agent/internal.h"
#include "push/push.h"
#include "serve/metrics.h"

#define ROWS_MAX 320

struct rows {
	struct serve_metric items[ROWS_MAX];
	size_t count;
};

/* The row is left out when there are too many: ROWS_MAX has room for all. */
static void add(struct rows *rows, const struct serve_metric *row)
{
	if (rows->count < ROWS_MAX)
		rows->items[rows->count++] = *row;
}

static void add_plain(struct rows *rows, const char *name, enum serve_metric_type type, double value, const char *help)
{
	add(rows, &(struct serve_metric){.name = name, .help = help, .type = type, .value = value});
}

static void add_labelled(struct rows *rows, const char *name, double value, struct serve_label label, const char *help)
{
	add(rows, &(struct serve_metric){
			  .name = name, .help = help, .type = SERVE_COUNTER, .labels = {label}, .value = value});
}

/* Adds a row for each mode that has such a number, which is an expression of its metrics m. */
#define EACH_MODE_THAT(has, n, kind, number, text)                                                                     \
	for (size_t i = 0; i < a->nr_parts; i++) {                                                                     \
		const struct agent_mode_metrics *m = &all->modes[i];                                                   \
		const enum session_mode mode = a->parts[i].mode;                                                       \
                                                                                                                       \
		if (has)                                                                                               \
			add(rows, &(struct serve_metric){.name = (n),                                                  \
							 .help = (text),                                               \
							 .type = (kind),                                               \
							 .labels = {{"mode", agent_mode_name(mode)}},                  \
							 .value = (double)(number)});                                  \
	}
#define EACH_MODE(n, kind, number, text) EACH_MODE_THAT(true, n, kind, number, text)

static void add_lost(struct rows *rows, const struct agent_part *part, const char *cause, uint64_t samples)
{
	add(rows, &(struct serve_metric){.name = "pybpf_samples_lost_total",
					 .help = "Samples that were lost.",
					 .labels = {{"mode", part->name}, {"cause", cause}},
					 .value = (double)samples});
}

/* Adds what became of a part's samples, by cause. */
static void add_lost_samples(struct rows *rows, const struct agent_part *part)
{
	const struct session_account *account = &part->account;

#define LOST_ROW(key, n) add_lost(rows, part, key, account->counters[PYBPF_COUNT_##n]);
#define ASKED_ROW(key, n)
#define WITHOUT_ROW(key, n)
#define PYTHON_ROW(key, n)
#define OTHER_ROW(key, n)
#define GIL_ROW(key, n)
#define INCOMPLETE_ROW(key, n)
#define ROW(n, class, key, text) class##_ROW(key, n)
	PYBPF_COUNTERS(ROW)
	add_lost(rows, part, "ring_buffer_full", account->unsent);
	add_lost(rows, part, "no_memory", account->unkept);
}

static void add_lost_stacks(struct rows *rows, const struct agent_part *part, const char *cause, uint64_t ns)
{
	if (part->mode != SESSION_CPU)
		add(rows, &(struct serve_metric){.name = "pybpf_wait_seconds_without_stack_total",
						 .help = "Time of waits whose stack was lost; it is in the profiles.",
						 .labels = {{"mode", part->name}, {"cause", cause}},
						 .value = (double)ns / 1e9});
}

static void add_samples(struct rows *rows, const struct agent *a, const struct agent_metrics *all)
{
	add_plain(rows, "pybpf_epochs_total", SERVE_COUNTER, (double)all->epochs, "Epochs that have ended.");
	add_plain(rows, "pybpf_epochs_late_total", SERVE_COUNTER, (double)all->late_epochs,
		  "Epochs that were more than 5 % longer than planned.");
	add_plain(rows, "pybpf_suspends_total", SERVE_COUNTER, (double)all->suspends, "Times that the machine slept.");
	add_plain(rows, "pybpf_clock_jumps_total", SERVE_COUNTER, (double)all->clock_jumps,
		  "Times that the clock was set by more than a second.");
	add_plain(rows, "pybpf_reload_failed_total", SERVE_COUNTER, (double)all->refused_changes,
		  "Times that SIGHUP found a file of options that was refused.");
	EACH_MODE("pybpf_epochs_unwritten_total", SERVE_COUNTER, m->unwritten,
		  "Epochs for which the folder had no room: their samples are not in it.")
	EACH_MODE("pybpf_samples_asked_total", SERVE_COUNTER, m->asked,
		  "Samples of epochs that have ended, lost ones among them.")
	EACH_MODE("pybpf_samples_taken_total", SERVE_COUNTER, m->taken,
		  "Samples of epochs that have ended, without those that were lost.")
	EACH_MODE("pybpf_samples_other_programs_total", SERVE_COUNTER, m->other_programs,
		  "Samples that were taken in programs without Python; they are not in the profiles.")
	for (size_t i = 0; i < a->nr_parts; i++)
		add_lost_samples(rows, &a->parts[i]);
	EACH_MODE_THAT(mode != SESSION_CPU, "pybpf_wait_seconds_lost_total", SERVE_COUNTER,
		       (double)m->lost_time_ns / 1e9, "Time of waits for which there was no room.")
	EACH_MODE_THAT(mode != SESSION_CPU, "pybpf_threads_lost_total", SERVE_COUNTER, m->lost_threads,
		       "Threads for whose time there was no room.")
	for (size_t i = 0; i < a->nr_parts; i++) {
		add_lost_stacks(rows, &a->parts[i], "memory_limit", all->modes[i].refused_stacks_ns);
		add_lost_stacks(rows, &a->parts[i], "not_received", all->modes[i].unsent_stacks_ns);
		add_lost_stacks(rows, &a->parts[i], "not_read", all->modes[i].unread_stacks_ns);
	}
}

/* Adds what there was no time for, or what did not let itself be read. */
static void add_unread(struct rows *rows, const struct agent *a, const struct agent_metrics *all)
{
	EACH_MODE_THAT(mode != SESSION_CPU, "pybpf_threads_unread", SERVE_GAUGE, m->unread_threads,
		       "Threads that have slept since pybpf began, and whose stacks are still to be read.")
	EACH_MODE_THAT(mode != SESSION_CPU, "pybpf_threads_woke_unread_total", SERVE_COUNTER, m->late_threads,
		       "Threads that slept when pybpf began, and woke before their stacks were read.")
	EACH_MODE("pybpf_threads_unnamed_total", SERVE_COUNTER, m->unread_names,
		  "Threads whose names there was no time to read.")
	EACH_MODE("pybpf_processes_missed_total", SERVE_COUNTER, m->missed_processes,
		  "Processes that ended before it was known what they ran.")
	EACH_MODE("pybpf_processes_refused", SERVE_GAUGE, m->refused_processes,
		  "Processes whose Python is not supported or not readable.")
	add_plain(rows, "pybpf_questions_unanswered_total", SERVE_COUNTER, (double)all->unanswered,
		  "Questions about files or memory that had no answer in time.");
}

static void add_cost(struct rows *rows, const struct agent *a, const struct agent_metrics *all)
{
	add_plain(rows, "pybpf_cpu_seconds_total", SERVE_COUNTER, all->cpu_s,
		  "CPU time of pybpf and its helpers, and of what serves, sends and keeps the folder.");
	add_plain(rows, "pybpf_resident_memory_bytes", SERVE_GAUGE, (double)all->rss_bytes,
		  "Memory of pybpf's main process at the end of the last epoch, without that of maps.");
	EACH_MODE("pybpf_map_memory_bytes", SERVE_GAUGE, m->map_bytes, "Memory of pybpf's maps in the kernel.")
	add_plain(rows, "pybpf_rate_divisor", SERVE_GAUGE, all->divisor,
		  "Divisor of the sampling rate: more than 1 while it is lowered.");
	add_plain(rows, "pybpf_epoch_cpu_seconds", SERVE_GAUGE, all->epoch_cpu_s, "CPU time of the last epoch.");
	add_plain(rows, "pybpf_epoch_seconds", SERVE_GAUGE, all->epoch_s, "Length of the last epoch.");
}

static void add_files(struct rows *rows, const struct agent *a, const struct agent_metrics *all)
{
	EACH_MODE("pybpf_files_written_total", SERVE_COUNTER, m->files.written, "Epochs that were written.")
	EACH_MODE("pybpf_files_written_bytes_total", SERVE_COUNTER, m->files.written_bytes,
		  "Bytes of the epochs that were written.")
	EACH_MODE("pybpf_files_failed_total", SERVE_COUNTER, m->files.failed, "Epochs that could not be written.")
	EACH_MODE("pybpf_files_merged_total", SERVE_COUNTER, m->files.merged,
		  "Times that the epochs of an hour became one.")
	EACH_MODE("pybpf_files_removed_total", SERVE_COUNTER, m->files.removed, "Files that were removed.")
	EACH_MODE("pybpf_files_cpu_seconds_total", SERVE_COUNTER, m->files.cpu_s,
		  "CPU time of the process that keeps the folder.")
	EACH_MODE("pybpf_files", SERVE_GAUGE, m->files.kept, "Files in the folder.")
	EACH_MODE("pybpf_files_bytes", SERVE_GAUGE, m->files.size, "Bytes of all files in the folder.")
}

static const char *const kinds[AGENT_RECEIVERS] = {
	[PUSH_OTLP] = "otlp", [PUSH_PYROSCOPE] = "pyroscope", [PUSH_PPROF] = "pprof"};

/* Adds what of the epochs no request could be made for: of waits time, else samples. */
static void add_unmade(struct rows *rows, const struct agent *a, const struct agent_metrics *m, bool of_waits)
{
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		for (size_t k = 0; k < a->nr_parts && a->options.push.urls[i]; k++) {
			const double unmade = (double)m->push[i].unmade[k];

			if ((a->parts[k].mode != SESSION_CPU) != of_waits)
				continue;
			add(rows,
			    &(struct serve_metric){
				    .name = of_waits ? "pybpf_wait_seconds_unsent_total" : "pybpf_samples_unsent_total",
				    .help = of_waits ? "Time of waits for which no request could be made."
						     : "Samples for which no request could be made.",
				    .labels = {{"receiver", kinds[i]}, {"mode", a->parts[k].name}},
				    .value = of_waits ? unmade / 1e6 : unmade});
		}
	}
}

/* Adds how large the queue of each receiver is, in memory or on the disk. */
static void add_queue(struct rows *rows, const struct agent *a, const struct agent_metrics *m, bool of_spool)
{
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		const struct push_counts *c = &m->push[i].counts;

		if (a->options.push.urls[i])
			add(rows,
			    &(struct serve_metric){.name = of_spool ? "pybpf_requests_spooled_bytes"
								    : "pybpf_requests_waiting_bytes",
						   .help = of_spool ? "Bytes of the requests in the spool."
								    : "Bytes of the requests that wait in memory.",
						   .type = SERVE_GAUGE,
						   .labels = {{"receiver", kinds[i]}},
						   .value = (double)(of_spool ? c->spooled_bytes : c->waiting_bytes)});
	}
}

/* Rows of one name follow each other: a name for all receivers, then the next one. */
static void add_push(struct rows *rows, const struct agent *a, const struct agent_metrics *m)
{
#define EACH_RECEIVER(n, value, text)                                                                                  \
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {                                                                 \
		const struct agent_push_metrics *p = &m->push[i];                                                      \
                                                                                                                       \
		if (a->options.push.urls[i])                                                                           \
			add_labelled(rows, n, (double)(value), (struct serve_label){"receiver", kinds[i]}, text);      \
	}
	EACH_RECEIVER("pybpf_requests_submitted_total", p->counts.submitted, "Requests that were to be sent.")
	EACH_RECEIVER("pybpf_requests_found_total", p->counts.found,
		      "Requests of an earlier agent that were in the spool.")
	EACH_RECEIVER("pybpf_requests_sent_total", p->counts.sent, "Requests that the receiver took.")
	EACH_RECEIVER("pybpf_requests_sent_bytes_total", p->counts.sent_bytes,
		      "Bytes of the requests that the receiver took.")
	EACH_RECEIVER("pybpf_requests_retried_total", p->counts.retried, "Attempts that failed and were repeated.")
	EACH_RECEIVER("pybpf_profiles_rejected_total", p->counts.rejected_profiles,
		      "Profiles that the receiver refused, of requests that it took.")
	add_unmade(rows, a, m, false);
	add_unmade(rows, a, m, true);
	EACH_RECEIVER("pybpf_sender_restarts_total", p->counts.restarts,
		      "Times that the process that sends was started again.")
	EACH_RECEIVER("pybpf_sender_cpu_seconds_total", p->counts.cpu_s, "CPU time of the process that sends.")
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		for (int cause = 0; cause < PUSH_CAUSES && a->options.push.urls[i]; cause++)
			add(rows, &(struct serve_metric){
					  .name = "pybpf_requests_dropped_total",
					  .help = "Requests that were lost.",
					  .labels = {{"receiver", kinds[i]}, {"cause", push_cause_name(cause)}},
					  .value = (double)m->push[i].counts.dropped[cause],
				  });
	}
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		const struct push_counts *c = &m->push[i].counts;

		if (a->options.push.urls[i])
			add(rows, &(struct serve_metric){.name = "pybpf_requests_waiting",
							 .help = "Requests that wait, in memory or in the spool.",
							 .type = SERVE_GAUGE,
							 .labels = {{"receiver", kinds[i]}},
							 .value = (double)(c->waiting + c->spooled)});
	}
	add_queue(rows, a, m, false);
	add_queue(rows, a, m, true);
}

static void add_share(struct rows *rows, const struct agent *a, const struct agent_metrics *all)
{
	if (!a->options.push.hosts_share)
		return;
	/* It is not known before the first epoch has ended. */
	if (a->chosen_day)
		add_plain(rows, "pybpf_host_sends", SERVE_GAUGE, all->sends,
			  "1 if --hosts-share has chosen this host for the day of the last epoch.");
	EACH_MODE("pybpf_epochs_unsent_total", SERVE_COUNTER, m->unsent,
		  "Epochs that were not sent, as --hosts-share had not chosen this host.")
}

static void add_server(struct rows *rows, const struct serve_counts *c)
{
	static const char name[] = "pybpf_http_requests_total", help[] = "Requests by HTTP, by what became of them.";

	add_labelled(rows, name, (double)c->answered, (struct serve_label){"outcome", "answered"}, help);
	add_labelled(rows, name, (double)c->wrong, (struct serve_label){"outcome", "wrong"}, help);
	add_labelled(rows, name, (double)c->denied, (struct serve_label){"outcome", "denied"}, help);
	add_labelled(rows, name, (double)c->unavailable, (struct serve_label){"outcome", "unavailable"}, help);
	add_labelled(rows, name, (double)c->left, (struct serve_label){"outcome", "client_left"}, help);
	add_plain(rows, "pybpf_http_clients_cut_total", SERVE_COUNTER, (double)c->cut,
		  "Clients that were too slow, or the oldest of too many.");
	add_plain(rows, "pybpf_http_restarts_total", SERVE_COUNTER, (double)c->restarts,
		  "Times that the process that serves was started again.");
	add_plain(rows, "pybpf_server_cpu_seconds_total", SERVE_COUNTER, c->cpu_s,
		  "CPU time of the process that serves.");
}

void agent_get_metrics(const struct agent *a, struct agent_metrics *metrics)
{
	*metrics = a->metrics;
	for (size_t i = 0; i < a->nr_sinks; i++) {
		if (a->sinks[i]->count)
			a->sinks[i]->count(a, metrics);
	}
}

int agent_write_metrics(const struct agent *a, FILE *out)
{
	struct rows rows = {.count = 0};
	struct agent_metrics m;

	agent_get_metrics(a, &m);
	add_samples(&rows, a, &m);
	add_unread(&rows, a, &m);
	add_cost(&rows, a, &m);
	if (a->options.dir)
		add_files(&rows, a, &m);
	add_push(&rows, a, &m);
	add_share(&rows, a, &m);
	add_server(&rows, &m.serve);
	return serve_metrics_write(rows.items, rows.count, out);
}
