// SPDX-License-Identifier: Apache-2.0
/* The table of all numbers of an account, and its output as text, as JSON and into a profile. */
#include "session/account/account.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/beyond.h"
#include "base/text.h"
#include "output/amount.h"
#include "output/output.h"
#include "session/account/account_entry.h"
#include "session/measure.h"

/* The run, and the values of its events. */
static const struct session_entry run_entries[] = {
	{"", "duration_s", SESSION_FRACTION(duration_s), .fact = PROFILE_FACT_DURATION},
	{"", "freq_hz", .kind = SESSION_ENTRY_RATE, SESSION_ENTRY_AT(freq), .fact = PROFILE_FACT_FREQ},
	{"", "source", .kind = SESSION_ENTRY_EVENT, SESSION_ENTRY_AT(source), .fact = PROFILE_FACT_EVENT},
	{"", "events_per_sample", .kind = SESSION_ENTRY_PERIOD, SESSION_ENTRY_AT(period)},
	{"memory", "touched_bytes", SESSION_COUNT(touched)},
	{"memory", "given_back_bytes", SESSION_COUNT(given_back)},
	{0},
};

/* The samples, and the time of threads by state. */
static const struct session_entry sample_entries[] = {
#define COUNTED(name)            SESSION_COUNT(counters[PYBPF_COUNT_##name])
#define ASKED_ENTRY(key, name)   NULL, key, COUNTED(name), "asked"
#define LOST_ENTRY(key, name)    "lost", key, COUNTED(name), "lost"
#define WITHOUT_ENTRY(key, name) "without_python", key, COUNTED(name), "without"
/* Excludes samples whose stack never came through the ring buffer. */
#define PYTHON_ENTRY(key, name) NULL, key, SESSION_COUNT(python), "python"
#define OTHER_ENTRY(key, name)  "other_states", key, COUNTED(name), "states"
/* Samples, whose time is in gil's entries, too. */
#define GIL_ENTRY(key, name)          "gil_samples", key, COUNTED(name), NULL
#define INCOMPLETE_ENTRY(key, name)   "incomplete", key, COUNTED(name), "incomplete"
#define ENTRY(name, class, key, text) {class##_ENTRY(key, name), text},

	{"samples", "asked", COUNTED(ASKED)},
	{"samples", "taken", SESSION_EPOCH_COUNT(taken)},
	{"samples", "python", SESSION_EPOCH_COUNT(python)},
	{"samples", "lost", SESSION_EPOCH_COUNT(lost)},
	PYBPF_COUNTERS(ENTRY)
	/* Counted by user space: the stack was never sent by the kernel. */
	{"lost", "ring_buffer_full", SESSION_EPOCH_COUNT(unsent), "lost",
	 "whose stack never found room in the ring buffer"},
	/* Likewise. */
	{"lost", "no_memory", SESSION_EPOCH_COUNT(unkept), "lost", "for which pybpf found no memory"},
	{"", "stacks", SESSION_COUNT(stacks)},
#define STATE_ENTRY(name, text)                                                                                        \
	{"state_s", text, SESSION_EPOCH_SECONDS(state_ns[PYBPF_STATE_##name]), PROFILE_ACCOUNT_STATES, text},
	PYBPF_STATES(STATE_ENTRY){0},
};

/* What was met, and what it took. */
static const struct session_entry rest_entries[] = {
	{"code_objects", "seen", SESSION_COUNT(names.codes)},
	{"code_objects", "unnamed", SESSION_COUNT(names.unnamed)},
	{"code_objects", "without_lines", SESSION_COUNT(names.no_lines)},
	{"code_objects", "without_columns", SESSION_COUNT(names.no_columns), "expressions",
	 "code objects without columns, as of Python before 3.11 and with -X no_debug_ranges, whose lines stand alone"},
	{"processes", "seen", SESSION_COUNT(processes.seen), "processes", "that ran Python"},
	{"processes", "started", SESSION_COUNT(processes.started), "processes", "that started during the run"},
	{"processes", "ended", SESSION_COUNT(schedstat.ended_processes)},
	{"processes", "several_pythons", SESSION_COUNT(processes.several), "processes",
	 "that had more than one Python"},
	{"processes", "refused", SESSION_COUNT(processes.refused), "processes",
	 "left out: a Python that is not supported or not readable"},
	{"processes", "unanswered", SESSION_COUNT(processes.unanswered), "processes",
	 "of the questions about files or memory had no answer in time"},
	{"processes", "missed", SESSION_EPOCH_COUNT(processes.missed), "processes",
	 "that ended before it was known what they ran"},
	{"processes", "missed_cpu_s", SESSION_EPOCH_SECONDS(processes.missed_ns)},
	{"processes", "missed_samples", COUNTED(MISSED)},
	{"processes", "lost_events", SESSION_COUNT(processes.lost)},
	{"processes", "lost_other_events", SESSION_COUNT(processes.lost_others)},
	{"processes", "lost_mappings", SESSION_COUNT(processes.lost_mappings)},
	{"processes", "recovered", SESSION_COUNT(processes.recovered)},
	{"records", "lost", SESSION_COUNT(lost_records)},
	{"", "kernel_ns_per_sample", SESSION_FRACTION(kernel_ns_per_sample)},
	{"", "user_cpu_s", SESSION_FRACTION(user_cpu_s)},
	{"", "peak_rss_kib", SESSION_COUNT(peak_rss_kib)},
	{"", "time_to_first_sample_ms", SESSION_FRACTION(time_to_first_sample_ms)},
	{0},
};

/* A place among all values that have a key, in the order of the JSON: those of the measures are in the midst. */
struct at {
	size_t table;
	const struct session_entry *entry; /* the last one; NULL: the table begins */
};

#define TABLES (SESSION_MEASURES + 3)

static const struct session_entry *get_table(size_t table)
{
	static const struct session_entry none = {0};

	if (table < 2)
		return table ? sample_entries : run_entries;
	return table == TABLES - 1 ? rest_entries : session_measures[table - 2]->entries ?: &none;
}

/* Returns the next value, or NULL behind the last one. */
static const struct session_entry *next_entry(struct at *at)
{
	at->entry = at->entry ? at->entry + 1 : get_table(at->table);
	while (!at->entry->key && ++at->table < TABLES)
		at->entry = get_table(at->table);
	return at->entry->key ? at->entry : NULL;
}

/* Bytes of a value: names of tracepoints are the longest. */
#define TEXT_MAX 256

static const void *field(const struct session_account *a, const struct session_entry *e)
{
	return (const char *)a + e->offset;
}

static uint64_t count(const struct session_account *a, const struct session_entry *e)
{
	return *(const uint64_t *)field(a, e);
}

/* Writes the value of the entry as text. Returns false if the value is not known. */
static bool write_value(const struct session_account *a, const struct session_entry *e, char *out, size_t size)
{
	double fraction;

	switch (e->kind) {
	case SESSION_ENTRY_COUNT:
		snprintf(out, size, "%" PRIu64, count(a, e));
		return true;
	case SESSION_ENTRY_RATE:
		snprintf(out, size, "%u", *(const unsigned *)field(a, e));
		return a->freq;
	case SESSION_ENTRY_EVENT:
		snprintf(out, size, "%s",
			 a->event                            ? a->event
			 : a->source == KERNEL_SOURCE_CYCLES ? "cycles"
							     : "cpu-clock");
		return true;
	case SESSION_ENTRY_PERIOD:
		snprintf(out, size, "%" PRIu64, count(a, e));
		return count(a, e);
	case SESSION_ENTRY_SECONDS:
		snprintf(out, size, "%.6f", (double)count(a, e) / 1e9);
		return true;
	case SESSION_ENTRY_FRACTION:
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
	const struct session_entry *e;
	struct at at = {0};
	uint64_t lost = 0;

	while ((e = next_entry(&at))) {
		if (e->group && strcmp(e->group, "lost") == 0)
			lost += count(a, e);
	}
	return lost;
}

struct session_account session_account_since(const struct session_account *now, const struct session_account *before)
{
	struct session_account since = {.source = now->source, .freq = now->freq, .has_states = now->has_states};
	const struct session_entry *e;
	struct at at = {0};

	/* One of them has no entry: PYBPF_COUNT_PYTHON, in place of which stands `python`. */
	for (int i = 0; i < PYBPF_NR_COUNTERS; i++)
		since.counters[i] = beyond(now->counters[i], before->counters[i]);
	while ((e = next_entry(&at))) {
		if (e->in_epochs)
			*(uint64_t *)((char *)&since + e->offset) = beyond(count(now, e), count(before, e));
	}
	return since;
}

static void print_processes(const struct processes_counts *c, FILE *out)
{
	char amount[OUTPUT_AMOUNT_MAX];

	if (c->seen > 1 || c->started)
		fprintf(out, "pybpf: %" PRIu64 " Python process%s, %" PRIu64 " of them started during the run\n",
			c->seen, text_es(c->seen), c->started);
	else if (!c->seen && !c->undecided)
		fputs("pybpf: no Python process was found\n", out);
	if (c->several)
		fprintf(out, "pybpf: %" PRIu64 " process%s had more than one Python%s: %s\n", c->several,
			text_es(c->several), c->several == 1 ? "" : ", one of them", c->versions);
	if (c->missed)
		fprintf(out,
			"pybpf: %" PRIu64
			" process%s ended before it was known what %s ran, with at least %s of CPU time\n",
			c->missed, text_es(c->missed), c->missed == 1 ? "it" : "they",
			output_duration(c->missed_ns, amount));
	if (c->refused)
		fprintf(out,
			"pybpf: %" PRIu64
			" process%s left out: a Python that is not supported or not readable, see `pybpf "
			"ps`\n",
			c->refused, text_es(c->refused));
	if (c->unanswered)
		fprintf(out,
			"pybpf: %" PRIu64
			" question%s about files or memory had no answer in time: a file system may not "
			"answer\n",
			c->unanswered, c->unanswered == 1 ? "" : "s");
	if (c->lost)
		fprintf(out,
			"pybpf: %" PRIu64 " start%s of processes to be profiled %s lost, as a buffer of the "
			"kernel was full: pybpf then examined all processes and found %" PRIu64
			" that it had missed; processes that ended before then are missing\n",
			c->lost, c->lost == 1 ? " or end" : "s or ends", c->lost == 1 ? "was" : "were", c->recovered);
	if (c->lost_mappings)
		fprintf(out,
			"pybpf: %" PRIu64
			" record%s of files that processes map %s lost, as a buffer of the kernel was full: "
			"pybpf then examined all processes again; a Python library that one loaded just then was "
			"found up to 5 s late\n",
			c->lost_mappings, c->lost_mappings == 1 ? "" : "s", c->lost_mappings == 1 ? "was" : "were");
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

void session_account_print(const struct session_account *a, const struct profile *p, bool cost, FILE *out)
{
	print_run(a, out);
	for (size_t i = 0; i < SESSION_MEASURES; i++) {
		if (session_measures[i]->print)
			session_measures[i]->print(a, p, out);
	}
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
	if (a->lost_records)
		fprintf(out,
			"pybpf: %" PRIu64
			" record%s that the kernel sent %s broken or found no memory: what %s reported is "
			"missing; samples of a lost stack are counted as \"whose stack never found room in the ring "
			"buffer\"\n",
			a->lost_records, a->lost_records == 1 ? "" : "s", a->lost_records == 1 ? "was" : "were",
			a->lost_records == 1 ? "it" : "they");
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
	const struct session_entry *e;
	char text[TEXT_MAX];
	struct at at = {0};
	int err = 0;

	while (!err && (e = next_entry(&at))) {
		if (e->group && (e->kind != SESSION_ENTRY_SECONDS || a->has_states))
			err = profile_add_account(p, e->group, e->key, e->text, count(a, e));
		if (e->fact && !err && write_value(a, e, text, sizeof(text)))
			err = profile_set_fact(p, e->fact, text);
	}
	return err;
}

void session_account_hide(struct session_account *a)
{
	for (size_t i = 0; i < SESSION_MEASURES; i++) {
		if (session_measures[i]->hide)
			session_measures[i]->hide(a);
	}
}

static void write_member(const struct session_account *a, const struct session_entry *e, FILE *out)
{
	const char *quote = e->kind == SESSION_ENTRY_EVENT ? "\"" : "";
	char text[TEXT_MAX];

	if (write_value(a, e, text, sizeof(text)))
		fprintf(out, "\"%s\": %s%s%s", e->key, quote, text, quote);
	else
		fprintf(out, "\"%s\": null", e->key);
}

/* Writes an object that begins there; its other entries may be anywhere after it. */
static void write_object(const struct session_account *a, const char *object, struct at first, FILE *out)
{
	const char *separator = "";

	fprintf(out, "\"%s\": {", object);
	for (const struct session_entry *e = first.entry; e; e = next_entry(&first)) {
		if (!e->object || strcmp(e->object, object) != 0)
			continue;
		fputs(separator, out);
		separator = ", ";
		write_member(a, e, out);
	}
	fputc('}', out);
}

static bool is_first(const struct session_entry *entry)
{
	const struct session_entry *e;
	struct at at = {0};

	while ((e = next_entry(&at)) != entry) {
		if (e->object && strcmp(e->object, entry->object) == 0)
			return false;
	}
	return true;
}

void session_account_json(const struct session_account *a, FILE *out)
{
	const char *separator = "{\n  ";
	const struct session_entry *e;
	struct at at = {0};

	while ((e = next_entry(&at))) {
		if (!e->object || (*e->object && !is_first(e)))
			continue;
		fputs(separator, out);
		separator = ",\n  ";
		if (*e->object)
			write_object(a, e->object, at, out);
		else
			write_member(a, e, out);
	}
	for (size_t i = 0; i < SESSION_MEASURES; i++) {
		if (!session_measures[i]->write_json)
			continue;
		fputs(separator, out);
		session_measures[i]->write_json(a, out);
	}
	fputs("\n}\n", out);
}
