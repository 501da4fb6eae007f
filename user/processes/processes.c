// SPDX-License-Identifier: Apache-2.0
/* The table of processes: handles events of processes and mappings, and keeps the records and their counts. */
#include "processes/processes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "helper/helper.h"
#include "base/clock.h"
#include "base/log.h"
#include "pybpf.h"
#include "processes/files.h"
#include "processes/internal.h"

/* Interval between look-ups of a container's name, and the age of a process at which they stop. */
#define LABEL_EVERY_S 0.2
#define LABEL_UNTIL_S 3.0
/* Longest time in which it asks processes for their services: stacks wait in their buffer meanwhile. */
#define ASK_BUDGET_S 0.02

/* Adds what the record counts for its process; called when the record is freed, and for records that remain. */
static void add_to_counts(const struct processes *p, struct processes_counts *counts,
			  const struct processes_record *process)
{
	if (!process->wanted)
		return;
	if (process->state == PROCESSES_PYTHON && !process->counted_elsewhere) {
		counts->seen++;
		counts->started += process->started;
	}
	if (process->running & (process->running - 1) && !counts->several++)
		processes_list_versions(p, process, counts->versions, sizeof(counts->versions));
	if (process->state == PROCESSES_REFUSED)
		counts->refused++;
	if (process->state == PROCESSES_LOOKING && process->ended) {
		counts->missed++;
		counts->missed_ns += process->cpu_ns;
	}
}

void processes_settle_ended(struct processes *p)
{
	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		if (process->state != PROCESSES_LOOKING || !process->ended)
			continue;
		/* It was looked at, and nothing that it mapped since could be a Python: its program runs no Python. */
		if (process->looked && !process->unknown_file && process->kind != PYBPF_PROGRAM_LOADS)
			processes_files_add_other(p->files, &process->file);
		if (processes_files_is_other(p->files, &process->file))
			process->state = PROCESSES_OTHER;
	}
}

void processes_report_mismatches(struct processes *p)
{
	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		if (!process->ended)
			processes_report_mismatch(p, process);
	}
}

void processes_forget_record(struct processes *p, struct processes_record *process)
{
	add_to_counts(p, &p->counts, process);
	p->counts.unsampled += processes_is_unsampled(process);
	processes_stop_looking(p, process);
	processes_remove_record(p, process);
}

/* Labels the record of a program after an exec, and ends the record of the program before. */
static void link_after_exec(struct processes *p, struct processes_record *process, uint64_t before_id)
{
	struct processes_record *before = processes_find_record(p, before_id);

	processes_label_record(p, process, before);
	if (!before)
		return;
	processes_hand_on(before, process);
	processes_end_record(p, before);
}

static void on_forked(struct processes *p, struct processes_record *process, const struct pybpf_process_event *event)
{
	struct processes_record *parent = processes_find_record(p, event->other_id);

	if (parent) {
		process->file = parent->file;
		process->kind = parent->kind;
		processes_label_copy(process, parent);
	} else {
		processes_label_record(p, process, NULL);
	}
	if (event->state == PYBPF_PROC_READY && parent && parent->state == PROCESSES_PYTHON) {
		process->known_before_run = process->copy = true;
		processes_become_python(p, process, parent->layouts[0]);
		processes_copy_runtimes(p, process, parent);
	} else if (event->state == PYBPF_PROC_OTHER) {
		process->state = PROCESSES_OTHER;
	} else {
		processes_start_look(p, process, true);
	}
}

static void on_execed(struct processes *p, struct processes_record *process, const struct pybpf_process_event *event)
{
	bool repaired;

	link_after_exec(p, process, event->other_id);
	repaired = processes_repair_entry(p, event);
	if (!repaired && event->kind == PYBPF_PROGRAM_PYTHON) {
		if (processes_reject_unwanted(p, process))
			return;
		process->known_before_run = event->state == PYBPF_PROC_READY;
		processes_become_python(p, process, event->layout);
		if (!process->known_before_run)
			processes_publish_state(p, process, PYBPF_PROC_READY, NULL);
	} else if (!repaired && event->state == PYBPF_PROC_OTHER) {
		process->state = PROCESSES_OTHER;
	} else {
		processes_start_look(p, process, true);
	}
}

static void on_mapping(const struct kernel_mapping *mapping, void *arg)
{
	struct processes *p = arg;
	struct processes_record *process;
	enum processes_mapped found;
	struct pybpf_runtime place;

	/*
	 * The process may have executed another program while other mappings were handled: a mapping of the new program
	 * must not be attributed to the old one.
	 */
	kernel_consume_processes(p->kernel);
	process = processes_find_pid(p, mapping->pid);
	if (process)
		process->mapped++;
	if ((!process && !p->options.all) || mapping->pid == getpid())
		return;
	found = processes_files_classify_mapping(p->files, mapping, &place);
	if (found == PROCESSES_MAPPED_NOTHING)
		return;
	process = processes_get_record(p, mapping->pid);
	if (!process)
		return;
	process->unknown_file |= found == PROCESSES_MAPPED_UNKNOWN;
	if (process->ended || process->state == PROCESSES_UNWANTED)
		return;
	if (found == PROCESSES_MAPPED_UNKNOWN) {
		processes_look_soon(p, process);
	} else if (found == PROCESSES_MAPPED_ASYNCIO) {
		if (processes_is_sampled(process))
			processes_look_again(p, process);
	} else if (processes_is_sampled(process)) {
		/* Schedules a look instead of using place: it may belong to a program whose exec event is yet to come.
		 */
		if (found == PROCESSES_MAPPED_PYTHON || !processes_has_runtime(p, process, &place))
			processes_look_again(p, process);
	} else if (found == PROCESSES_MAPPED_PYTHON || process->kind != PYBPF_PROGRAM_LOADS || process->mismatched) {
		processes_start_look(p, process, true);
	} else if (!processes_reject_unwanted(p, process)) {
		processes_make_ready(p, process, &place);
	}
}

static void on_process(const struct pybpf_process_event *event, void *arg)
{
	struct processes *p = arg;
	struct processes_record *process;

	if (event->what == PYBPF_PROCESS_EXITED) {
		process = processes_find_record(p, event->proc_id);
		if (!process)
			return;
		process->cpu_ns = event->cpu_ns;
		memcpy(process->comm, event->comm, sizeof(process->comm));
		process->wanted |= event->wanted;
		processes_end_record(p, process);
		return;
	}
	process = processes_add_record(p, event);
	if (!process || process->ended)
		return;
	process->wanted |= event->wanted;
	processes_note_parents(p, process, processes_find_record(p, event->other_id));
	switch (event->what) {
	case PYBPF_PROCESS_FOUND:
		processes_label_record(p, process, NULL);
		processes_start_look(p, process, false);
		break;
	case PYBPF_PROCESS_FORKED:
		on_forked(p, process, event);
		break;
	case PYBPF_PROCESS_EXECED:
		on_execed(p, process, event);
		break;
	}
}

int processes_consume_events(struct processes *p)
{
	int err = kernel_consume_processes(p->kernel);

	kernel_consume_mappings(p->kernel);
	processes_resync(p, clock_s(CLOCK_MONOTONIC));
	err = p->error ?: err;
	if (err)
		log_error("cannot keep track of processes: %s", strerror(-err));
	return err;
}

void processes_get_fds(const struct processes *p, int fds[PROCESSES_FDS])
{
	kernel_get_watch_fds(p->kernel, fds);
}

void processes_label_young(struct processes *p, double now)
{
	double ask_until;

	if (now < p->next_label)
		return;
	p->next_label = now + LABEL_EVERY_S;
	ask_until = clock_s(CLOCK_MONOTONIC) + ASK_BUDGET_S;
	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		if (process->ended || now >= process->added_at + LABEL_UNTIL_S)
			continue;
		processes_label_again(p, process);
		processes_choose_again(p, process);
		if (process->state == PROCESSES_PYTHON && clock_s(CLOCK_MONOTONIC) < ask_until)
			processes_ask_service(p, process);
	}
}

struct processes *processes_new(const struct processes_options *options, struct kernel *kernel, struct pysym *pysym)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		goto no_memory;
	p->options = *options;
	p->kernel = kernel;
	p->pysym = pysym;
	processes_init_records(p);
	p->files = processes_files_new(kernel, options->tasks);
	p->labels = container_labels_new();
	p->groups = processes_groups_new();
	p->parents = options->parents ? processes_parents_new() : NULL;
	if (!p->files || !p->labels || !p->groups || (options->parents && !p->parents))
		goto no_memory;
	if (!kernel_open_watch(kernel, &(struct kernel_watcher){on_process, on_mapping, p}))
		return p;
	goto failed;
no_memory:
	log_error("out of memory while starting");
failed:
	processes_free(p);
	return NULL;
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	processes_free_records(p);
	processes_files_free(p->files);
	free(p->unheard);
	container_labels_free(p->labels);
	processes_groups_free(p->groups);
	processes_parents_free(p->parents);
	free(p);
}

size_t processes_count_living(const struct processes *p)
{
	return p->living;
}

static bool is_undecided(const struct processes_record *process)
{
	return process->wanted && !process->ended && process->unanswered &&
	       (process->state == PROCESSES_LOOKING || process->state == PROCESSES_REFUSED);
}

size_t processes_count_undecided(const struct processes *p)
{
	size_t count = 0;

	for (uint32_t i = 0; i < p->records.count && !p->options.all; i++)
		count += is_undecided(processes_record_at(p, i));
	return count;
}

bool processes_have_python(const struct processes *p)
{
	return p->python_found;
}

bool processes_have_asyncio(const struct processes *p)
{
	return p->asyncio_found;
}

bool processes_have_ended(const struct processes *p, double before)
{
	for (uint32_t i = 0; i < p->records.count; i++) {
		const struct processes_record *process = processes_record_at(p, i);

		if (process->ended && process->ended_at < before)
			return true;
	}
	return false;
}

void processes_visit_ended(struct processes *p, double before,
			   void (*visit)(struct processes_record *process, void *arg), void *arg)
{
	for (uint32_t i = 0, count; i < p->records.count; i += count == p->records.count) {
		struct processes_record *process = processes_record_at(p, i);

		count = p->records.count;
		if (process->ended && process->ended_at < before)
			visit(process, arg);
	}
}

void processes_get_final_counts(const struct processes *p, struct processes_counts *out)
{
	out->missed = p->counts.missed;
	out->missed_ns = p->counts.missed_ns;
}

size_t processes_count_refused(const struct processes *p)
{
	size_t count = 0;

	for (uint32_t i = 0; i < p->records.count; i++) {
		const struct processes_record *process = processes_record_at(p, i);

		count += process->wanted && !process->ended && process->state == PROCESSES_REFUSED;
	}
	return count;
}

void processes_get_counts(const struct processes *p, struct processes_counts *out)
{
	*out = p->counts;
	for (uint32_t i = 0; i < p->records.count; i++)
		add_to_counts(p, out, processes_record_at(p, i));
	/* Those of the last check: events lost while the profile is written do not matter. */
	out->lost = p->losses.events;
	out->lost_others = p->losses.others;
	/* Processes that were given by PID are known, and were looked at once more. */
	out->lost_mappings = p->options.all ? p->losses.mappings : 0;
	out->undecided = processes_count_undecided(p);
	out->unanswered = helper_unanswered();
}
