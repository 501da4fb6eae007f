// SPDX-License-Identifier: Apache-2.0
/* The table of all numbers of an account, and its output as text, as JSON and into a profile. */
#include "session/account.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "kernel/waits.h"
#include "output/amount.h"
#include "output/output.h"
#include "session/account_threads.h"
#include "session/blocks.h"
#include "session/gil.h"
#include "session/suspended.h"

/* How a number is stored and written. */
enum kind {
	COUNT,    /* uint64_t */
	RATE,     /* unsigned; 0: there is no timer */
	EVENT,    /* what is counted: by the timer, or in place of time */
	PERIOD,   /* uint64_t; 0: there is a timer */
	NS,       /* uint64_t, written in seconds */
	FRACTION, /* double; negative: not known */
};

/*
 * All values of a run that have a key, in the order of the JSON. Groups of the profile's account are printed with their
 * numbers and texts at the end of the run, and for a saved profile.
 */
static const struct entry {
	const char *object; /* its object in the JSON; "": the outermost one; NULL: not in the JSON */
	const char *key;
	enum kind kind;
	size_t offset;
	const char *group, *text; /* in the profile's account; NULL: not in it */
	const char *fact;         /* key of the profile's fact; NULL: not a fact */
} entries[] = {
#define AT(field)                .offset = offsetof(struct session_account, field)
#define COUNTED(name)            COUNT, AT(counters[PYBPF_COUNT_##name])
#define ASKED_ENTRY(key, name)   NULL, key, COUNTED(name), "asked"
#define LOST_ENTRY(key, name)    "lost", key, COUNTED(name), "lost"
#define WITHOUT_ENTRY(key, name) "without_python", key, COUNTED(name), "without"
/* Excludes samples whose stack never came through the ring buffer. */
#define PYTHON_ENTRY(key, name) NULL, key, COUNT, AT(python), "python"
#define OTHER_ENTRY(key, name)  "other_states", key, COUNTED(name), "states"
/* Samples, whose time is in gil's entries, too. */
#define GIL_ENTRY(key, name)          "gil_samples", key, COUNTED(name), NULL
#define INCOMPLETE_ENTRY(key, name)   "incomplete", key, COUNTED(name), "incomplete"
#define ENTRY(name, class, key, text) {class##_ENTRY(key, name), text},

	{"", "duration_s", FRACTION, AT(duration_s), .fact = PROFILE_FACT_DURATION},
	{"", "freq_hz", RATE, AT(freq), .fact = PROFILE_FACT_FREQ},
	{"", "source", EVENT, AT(source), .fact = PROFILE_FACT_EVENT},
	{"", "events_per_sample", PERIOD, AT(period)},
	{"memory", "touched_bytes", COUNT, AT(touched)},
	{"memory", "given_back_bytes", COUNT, AT(given_back)},
	{"memory", "held_bytes", COUNT, AT(held)},
	{"memory", "held_at_most_bytes", COUNT, AT(held_at_most)},
	{"memory", "unknown_touched_bytes", COUNT, AT(unknown_touched)},
	{"memory", "unknown_given_back_bytes", COUNT, AT(unknown_given_back)},
	{"memory", "refused_bytes", COUNT, AT(refused_memory)},
	{"memory", "lost_records", COUNT, AT(unsent_memory)},
	{"samples", "asked", COUNTED(ASKED)},
	{"samples", "taken", COUNT, AT(taken)},
	{"samples", "python", COUNT, AT(python)},
	{"samples", "lost", COUNT, AT(lost)},
	PYBPF_COUNTERS(ENTRY)
	/* Counted by user space: the stack was never sent by the kernel. */
	{"lost", "ring_buffer_full", COUNT, AT(unsent), "lost", "whose stack never found room in the ring buffer"},
	{"", "stacks", COUNT, AT(stacks)},
#define STATE_ENTRY(name, text) {"state_s", text, NS, AT(state_ns[PYBPF_STATE_##name]), PROFILE_ACCOUNT_STATES, text},
	PYBPF_STATES(STATE_ENTRY){"state_s", "asleep", NS, AT(sched.asleep_ns)},
	{"threads", "counted", COUNT, AT(sched.threads)},
	{"threads", "ended", COUNT, AT(sched.ended_threads)},
	{"threads", "ended_cpu_s", NS, AT(sched.ended_threads_ns)},
	{"threads", "found_late", COUNT, AT(sched.unread_threads)},
	{"threads", "not_in_time", COUNT, AT(sched.late_threads)},
	{"threads", "idle", COUNT, AT(idle_threads)},
	{"threads", "unread", COUNT, AT(unread_sleepers)},
	{"threads", "woke_unread", COUNT, AT(late_sleepers)},
	{"threads", "unread_s", NS, AT(unread_sleepers_ns)},
	{"waits", "short", COUNT, AT(short_waits)},
	{"waits", "short_s", NS, AT(short_ns)},
	{"waits", "undrawn", COUNT, AT(undrawn_waits)},
	{"waits", "unnamed", COUNT, AT(unnamed_waits)},
	{"waits", "undrawn_s", NS, AT(undrawn_ns)},
	{"waits", "untimed", COUNT, AT(refused_waits)},
	{"waits", "untimed_s", NS, AT(refused_ns)},
	{"threads", "unnamed", COUNT, AT(unread_names)},
	{"threads", "lost", COUNT, AT(lost_threads)},
	{"gil", "waits", COUNT, AT(gil.waits)},
	{"gil", "longest_wait_s", NS, AT(gil.longest_ns)},
	{"gil", "holder_unknown_s", NS, AT(gil.unknown.ns)},
	{"gil", "asleep_with_it", COUNT, AT(gil.asleep.count)},
	{"gil", "asleep_with_it_s", NS, AT(gil.asleep.ns)},
	{"gil", "longest_asleep_with_it_s", NS, AT(gil.asleep.longest_ns)},
	{"gil", "holder_waited_for_cpu_s", NS, AT(gil.queued_ns)},
	{"gil", "holder_throttled_s", NS, AT(gil.throttled_ns)},
	{"gil", "held_on_cpu_s", NS, AT(gil.held_ns)},
	{"gil", "held_in_other_code_s", NS, AT(gil.held_elsewhere_ns)},
	{"gil", "held_in_kernel_s", NS, AT(gil.held_kernel_ns)},
	{"gil", "held_in_unknown_code_s", NS, AT(gil.held_unknown_ns)},
	{"suspended_tasks", "time_s", NS, AT(suspended.ns)},
	{"suspended_tasks", "snapshots", COUNT, AT(suspended.snapshots), "suspended tasks", "snapshots of them"},
	{"suspended_tasks", "failed", COUNT, AT(suspended.failed)},
	{"suspended_tasks", "interval_s", NS, AT(suspended.interval_ns)},
	{"suspended_tasks", "longest_interval_s", NS, AT(suspended.longest_ns)},
	{"suspended_tasks", "cost_s", NS, AT(suspended.cost_ns)},
	{"suspended_tasks", "suspended", COUNT, AT(suspended.suspended)},
	{"suspended_tasks", "running", COUNT, AT(suspended.running)},
	{"suspended_tasks", "ended", COUNT, AT(suspended.ended)},
	{"suspended_tasks", "moving", COUNT, AT(suspended.moving), "suspended tasks",
	 "tasks left out of one, as they changed while they were read"},
	{"suspended_tasks", "torn_lists", COUNT, AT(suspended.torn), "suspended tasks",
	 "lists of tasks that were not read to their ends, as they changed meanwhile"},
	{"suspended_tasks", "beyond", COUNT, AT(suspended.beyond), "suspended tasks",
	 "snapshots with more tasks than are read"},
	{"suspended_tasks", "most", COUNT, AT(suspended.most)},
	{"suspended_tasks", "unkept_s", NS, AT(suspended.unkept_ns)},
	{"threads", "lost_time_s", NS, AT(lost_time_ns)},
	{"code_objects", "seen", COUNT, AT(names.codes)},
	{"code_objects", "unnamed", COUNT, AT(names.unnamed)},
	{"code_objects", "without_lines", COUNT, AT(names.no_lines)},
	{"code_objects", "without_columns", COUNT, AT(names.no_columns), "expressions",
	 "code objects without columns, as of Python before 3.11 and with -X no_debug_ranges, whose lines stand alone"},
	{"processes", "seen", COUNT, AT(processes.seen), "processes", "that ran Python"},
	{"processes", "started", COUNT, AT(processes.started), "processes", "that started during the run"},
	{"processes", "ended", COUNT, AT(sched.ended_processes)},
	{"processes", "several_pythons", COUNT, AT(processes.several), "processes", "that had more than one Python"},
	{"processes", "refused", COUNT, AT(processes.refused), "processes",
	 "left out: a Python that is not supported or not readable"},
	{"processes", "unanswered", COUNT, AT(processes.unanswered), "processes",
	 "of the questions about files or memory had no answer in time"},
	{"processes", "missed", COUNT, AT(processes.missed), "processes",
	 "that ended before it was known what they ran"},
	{"processes", "missed_cpu_s", NS, AT(processes.missed_ns)},
	{"processes", "missed_samples", COUNTED(MISSED)},
	{"processes", "lost_events", COUNT, AT(processes.lost)},
	{"processes", "lost_other_events", COUNT, AT(processes.lost_others)},
	{"processes", "lost_mappings", COUNT, AT(processes.lost_mappings)},
	{"processes", "recovered", COUNT, AT(processes.recovered)},
	{"", "kernel_ns_per_sample", FRACTION, AT(kernel_ns_per_sample)},
	{"", "user_cpu_s", FRACTION, AT(user_cpu_s)},
	{"", "peak_rss_kib", COUNT, AT(peak_rss_kib)},
	{"", "time_to_first_sample_ms", FRACTION, AT(time_to_first_sample_ms)},
};

/* Bytes of a value: names of tracepoints are the longest. */
#define TEXT_MAX 256
#define ENTRIES  (sizeof(entries) / sizeof(*entries))

static const void *field(const struct session_account *a, const struct entry *e)
{
	return (const char *)a + e->offset;
}

static uint64_t count(const struct session_account *a, const struct entry *e)
{
	return *(const uint64_t *)field(a, e);
}

/* Writes the value of the entry as text. Returns false if the value is not known. */
static bool write_value(const struct session_account *a, const struct entry *e, char *out, size_t size)
{
	double fraction;

	switch (e->kind) {
	case COUNT:
		snprintf(out, size, "%" PRIu64, count(a, e));
		return true;
	case RATE:
		snprintf(out, size, "%u", *(const unsigned *)field(a, e));
		return a->freq;
	case EVENT:
		snprintf(out, size, "%s",
			 a->event                            ? a->event
			 : a->source == KERNEL_SOURCE_CYCLES ? "cycles"
							     : "cpu-clock");
		return true;
	case PERIOD:
		snprintf(out, size, "%" PRIu64, count(a, e));
		return count(a, e);
	case NS:
		snprintf(out, size, "%.6f", (double)count(a, e) / 1e9);
		return true;
	case FRACTION:
		fraction = *(const double *)field(a, e);
		snprintf(out, size, "%.3f", fraction);
		return fraction >= 0;
	}
	return false;
}

uint64_t session_account_asked(const struct session_account *a)
{
	/* For each class of PYBPF_COUNTERS: 1 if a sample is in exactly one of its counters, else 0. */
	enum {
		ASKED_ADDS = 0,
		LOST_ADDS = 1,
		WITHOUT_ADDS = 1,
		PYTHON_ADDS = 1,
		OTHER_ADDS = 0,
		GIL_ADDS = 0,
		INCOMPLETE_ADDS = 0
	};
	uint64_t asked = 0;

#define ADD(name, class, ...) asked += class##_ADDS * a->counters[PYBPF_COUNT_##name];
	PYBPF_COUNTERS(ADD)
#undef ADD
	return asked;
}

uint64_t session_account_lost(const struct session_account *a)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		if (entries[i].group && strcmp(entries[i].group, "lost") == 0)
			lost += count(a, &entries[i]);
	}
	return lost;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "es";
}

static void print_processes(const struct processes_counts *c, FILE *out)
{
	char amount[OUTPUT_AMOUNT_MAX];

	if (c->seen > 1 || c->started)
		fprintf(out, "pybpf: %" PRIu64 " Python process%s, %" PRIu64 " of them started during the run\n",
			c->seen, plural(c->seen), c->started);
	else if (!c->seen && !c->undecided)
		fputs("pybpf: no Python process was found\n", out);
	if (c->several)
		fprintf(out, "pybpf: %" PRIu64 " process%s had more than one Python%s: %s\n", c->several,
			plural(c->several), c->several == 1 ? "" : ", one of them", c->versions);
	if (c->missed)
		fprintf(out,
			"pybpf: %" PRIu64 " process%s ended before it was known what %s ran, with %s of CPU time\n",
			c->missed, plural(c->missed), c->missed == 1 ? "it" : "they",
			output_duration(c->missed_ns, amount));
	if (c->refused)
		fprintf(out,
			"pybpf: %" PRIu64
			" process%s left out: a Python that is not supported or not readable, see `pybpf "
			"ps`\n",
			c->refused, plural(c->refused));
	if (c->unanswered)
		fprintf(out,
			"pybpf: %" PRIu64
			" question%s about files or memory had no answer in time: a file system may not "
			"answer\n",
			c->unanswered, c->unanswered == 1 ? "" : "s");
	if (c->lost)
		fprintf(out,
			"pybpf: %" PRIu64 " start%s of processes to be profiled %s lost, as a buffer of the "
			"kernel was full: all processes were looked at, and %" PRIu64
			" had been missed; one that ended "
			"before that is missing\n",
			c->lost, c->lost == 1 ? " or end" : "s or ends", c->lost == 1 ? "was" : "were", c->recovered);
	if (c->lost_mappings)
		fprintf(out,
			"pybpf: %" PRIu64
			" record%s of files that processes map %s lost, as a buffer of the kernel was full: "
			"all were looked at again; a Python library that one loaded just then was found up to 5 s "
			"late\n",
			c->lost_mappings, c->lost_mappings == 1 ? "" : "s", c->lost_mappings == 1 ? "was" : "were");
}

/* Prints which threads, and which of their time, are not in the profile. */
static void print_sleepers(const struct session_account *a, FILE *out)
{
	if (a->idle_threads) {
		fprintf(out, "pybpf: %" PRIu64 " thread%s slept throughout and %s left out (--idle keeps them): ",
			a->idle_threads, a->idle_threads == 1 ? "" : "s", a->idle_threads == 1 ? "is" : "are");
		text_print(a->idle_where, out);
		fputc('\n', out);
	}
	session_print_unread(a, out);
	session_print_unnamed(a, out);
	session_print_short(a, out);
	session_print_undrawn(a, out);
	if (a->unnamed_waits)
		fprintf(out,
			"pybpf: of %" PRIu64 " wait%s only the state is told: there were more than %d peers, files and "
			"processes\n",
			a->unnamed_waits, a->unnamed_waits == 1 ? "" : "s", KERNEL_WAITS_MAX);
	if (a->lost_time_ns || a->lost_threads)
		fprintf(out,
			"pybpf: lost: %.3f s of waits that found no room (see --max-stacks), %" PRIu64 " thread%s\n",
			(double)a->lost_time_ns / 1e9, a->lost_threads, a->lost_threads == 1 ? "" : "s");
}

static void print_run(const struct session_account *a, FILE *out)
{
	/* Its samples have no stacks: session_gil_print() tells what they say. */
	if (a->has_gil) {
		fprintf(out, "pybpf: %.2f s, waits measured; %" PRIu64 " distinct stack%s\n", a->duration_s, a->stacks,
			a->stacks == 1 ? "" : "s");
		return;
	}
	fprintf(out, "pybpf: %.2f s%s ", a->duration_s, a->has_states ? ", waits measured, CPU time sampled" : "");
	if (a->unit)
		fputs("of changes of resident memory: ", out);
	else if (a->event && a->period > 1)
		fprintf(out, "of %s, one sample for %" PRIu64 " of them: ", a->event, a->period);
	else if (a->event)
		fprintf(out, "of %s: ", a->event);
	else
		fprintf(out, "at %u Hz on the %s: ", a->freq,
			a->source == KERNEL_SOURCE_CYCLES ? "CPU's cycles" : "CPU clock");
	fprintf(out,
		"%" PRIu64 " sample%s asked, %" PRIu64 " taken, %" PRIu64 " with Python frames; %" PRIu64
		" distinct stack%s\n",
		a->counters[PYBPF_COUNT_ASKED], a->counters[PYBPF_COUNT_ASKED] == 1 ? "" : "s", a->taken, a->python,
		a->stacks, a->stacks == 1 ? "" : "s");
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

static void print_memory(const struct session_account *a, FILE *out)
{
	fprintf(out, "pybpf: %.1f MiB of resident memory became new, and %.1f MiB were given back", mib(a->touched),
		mib(a->given_back));
	if (!a->has_held) {
		fputs(", which are not subtracted from the stacks\n", out);
		return;
	}
	fprintf(out,
		": stacks hold %.1f MiB of the difference; no stack is known for %.1f MiB of what became new and for "
		"%.1f MiB of what was given back\n",
		mib(a->held), mib(a->unknown_touched), mib(a->unknown_given_back));
	if (a->held_at_most)
		fprintf(out,
			"pybpf: processes that have ended are shown with what they held when each held most, in sum "
			"%.1f MiB\n",
			mib(a->held_at_most));
	if (a->refused_memory)
		fprintf(out, "pybpf: whose %.1f MiB are could not be kept: the memory was used up (see --max-memory)\n",
			mib(a->refused_memory));
	if (a->unsent_memory)
		fprintf(out,
			"pybpf: %" PRIu64 " change%s of memory %s lost, as a buffer of the kernel was full: stacks may "
			"hold more or less than shown\n",
			a->unsent_memory, a->unsent_memory == 1 ? "" : "s", a->unsent_memory == 1 ? "was" : "were");
}

void session_account_print(const struct session_account *a, const struct profile *p, bool cost, FILE *out)
{
	print_run(a, out);
	if (a->has_states)
		output_states(p, "pybpf: ", out);
	else
		session_print_sched(a, out);
	if (a->unit)
		print_memory(a, out);
	print_sleepers(a, out);
	if (a->has_gil)
		session_gil_print(&a->gil, a->state_ns[PYBPF_STATE_GIL], out);
	session_suspended_print(&a->suspended, out);
	session_blocks_print(&a->blocks, out);
	output_account_group(p, "without", "pybpf: ", "without Python frames", out);
	output_account_group(p, "lost", "pybpf: ", "lost", out);
	output_account_group(p, "incomplete", "pybpf: ", "incomplete", out);
	output_account_group(p, "states", "pybpf: ", "left out, and not in the sum", out);
	print_processes(&a->processes, out);
	if (a->names.unnamed)
		fprintf(out, "pybpf: %" PRIu64 " of %" PRIu64 " code object%s could not be named\n", a->names.unnamed,
			a->names.codes, a->names.codes == 1 ? "" : "s");
	if (a->names.no_lines)
		fprintf(out,
			"pybpf: %" PRIu64 " of %" PRIu64
			" code object%s %s shown without lines: the line table was longer "
			"than %u KiB or not in memory at first sight, and gone when it was read again\n",
			a->names.no_lines, a->names.codes, a->names.codes == 1 ? "" : "s",
			a->names.no_lines == 1 ? "is" : "are", PYBPF_COPY_LINES >> 10);
	output_account_group(p, "expressions", "pybpf: ", "expressions", out);
	if (a->timed)
		fprintf(out, "pybpf: the time of %" PRIu64 " %s%s was kept, in %" PRIu64 " KiB of memory\n", a->timed,
			a->has_states ? "waits and sample" : "sample", a->timed == 1 && !a->has_states ? "" : "s",
			(a->timed_bytes + 1023) / 1024);
	if (!cost)
		return;
	if (a->measured)
		fprintf(out, "pybpf: cost: %.0f ns of kernel program per sample; ", a->kernel_ns_per_sample);
	else
		fputs("pybpf: cost: kernel program not measured; ", out);
	fprintf(out, "pybpf itself %.3f s of CPU, %.1f MiB at most; ", a->user_cpu_s, (double)a->peak_rss_kib / 1024);
	if (a->time_to_first_sample_ms >= 0)
		fprintf(out, "first sample after %.0f ms\n", a->time_to_first_sample_ms);
	else
		fputs("no sample\n", out);
}

int session_account_keep(const struct session_account *a, struct profile *p)
{
	char text[TEXT_MAX];
	int err = 0;

	for (const struct entry *e = entries; e < entries + ENTRIES && !err; e++) {
		if (e->group && (e->kind != NS || a->has_states))
			err = profile_add_account(p, e->group, e->key, e->text, count(a, e));
		if (e->fact && !err && write_value(a, e, text, sizeof(text)))
			err = profile_set_fact(p, e->fact, text);
	}
	return err;
}

void session_account_hide(struct session_account *a)
{
	session_blocks_hide(&a->blocks);
}

static void write_member(const struct session_account *a, const struct entry *e, FILE *out)
{
	const char *quote = e->kind == EVENT ? "\"" : "";
	char text[TEXT_MAX];

	if (write_value(a, e, text, sizeof(text)))
		fprintf(out, "\"%s\": %s%s%s", e->key, quote, text, quote);
	else
		fprintf(out, "\"%s\": null", e->key);
}

/* Writes the object of the first entry; its other entries may be anywhere after it in the table. */
static void write_object(const struct session_account *a, const struct entry *first, FILE *out)
{
	fprintf(out, "\"%s\": {", first->object);
	for (const struct entry *e = first; e < entries + ENTRIES; e++) {
		if (!e->object || strcmp(e->object, first->object) != 0)
			continue;
		fputs(e == first ? "" : ", ", out);
		write_member(a, e, out);
	}
	fputc('}', out);
}

static bool is_first(const struct entry *entry)
{
	for (const struct entry *e = entries; e < entry; e++) {
		if (e->object && strcmp(e->object, entry->object) == 0)
			return false;
	}
	return true;
}

void session_account_json(const struct session_account *a, FILE *out)
{
	const char *separator = "{\n  ";

	for (const struct entry *e = entries; e < entries + ENTRIES; e++) {
		if (!e->object || (*e->object && !is_first(e)))
			continue;
		fputs(separator, out);
		separator = ",\n  ";
		if (*e->object)
			write_object(a, e, out);
		else
			write_member(a, e, out);
	}
	session_blocks_json(&a->blocks, out);
	fputs("\n}\n", out);
}
