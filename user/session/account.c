// SPDX-License-Identifier: Apache-2.0
#include "session/account.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum counter_class {
	CLASS_ASKED,
	CLASS_LOST,
	CLASS_WITHOUT,
	CLASS_PYTHON,
	CLASS_INCOMPLETE,
};

static const struct counter {
	enum counter_class class;
	const char *group, *key, *text;
} counters[PYBPF_NR_COUNTERS] = {
#define X(name, class, key, text) [PYBPF_COUNT_##name] = {CLASS_##class, #class, key, text},
	PYBPF_COUNTERS(X)
#undef X
};

/* Of user space's own making: the stack stayed behind in the kernel. */
static const char unsent_key[] = "ring_buffer_full", unsent_text[] = "whose stack never found room in the ring buffer";

static uint64_t sum(const struct session_account *a, enum counter_class class)
{
	uint64_t total = 0;

	for (int i = 0; i < PYBPF_NR_COUNTERS; i++) {
		if (counters[i].class == class)
			total += a->counters[i];
	}
	return total;
}

uint64_t session_account_asked(const struct session_account *a)
{
	return sum(a, CLASS_LOST) + sum(a, CLASS_WITHOUT) + sum(a, CLASS_PYTHON);
}

uint64_t session_account_lost(const struct session_account *a)
{
	return sum(a, CLASS_LOST);
}

static void print_class(const struct session_account *a, enum counter_class class, const char *title, uint64_t more,
			FILE *out)
{
	const char *separator = "";

	if (!sum(a, class) && !more)
		return;
	fprintf(out, "pybpf: %s: ", title);
	for (int i = 0; i < PYBPF_NR_COUNTERS; i++) {
		if (counters[i].class != class || !a->counters[i])
			continue;
		fprintf(out, "%s%" PRIu64 " %s", separator, a->counters[i], counters[i].text);
		separator = "; ";
	}
	if (more)
		fprintf(out, "%s%" PRIu64 " %s", separator, more, unsent_text);
	fputc('\n', out);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "es";
}

static void print_processes(const struct processes_counts *c, FILE *out)
{
	if (c->seen > 1 || c->started)
		fprintf(out, "pybpf: %" PRIu64 " process%s ran Python, %" PRIu64 " of them started during the run\n",
			c->seen, plural(c->seen), c->started);
	else if (!c->seen)
		fputs("pybpf: no process ran Python\n", out);
	if (c->several)
		fprintf(out, "pybpf: %" PRIu64 " process%s had more than one Python%s: %s\n", c->several,
			plural(c->several), c->several == 1 ? "" : ", one of them", c->versions);
	if (c->missed)
		fprintf(out,
			"pybpf: %" PRIu64
			" process%s ended before it was known what they ran, with %.3f s of CPU time\n",
			c->missed, plural(c->missed), (double)c->missed_ns / 1e9);
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
			"pybpf: %" PRIu64
			" records of what the machine's processes start and map were lost: of those to be "
			"profiled, some may have been seen late, or not at all\n",
			c->lost);
}

void session_account_print(const struct session_account *a, bool cost, FILE *out)
{
	fprintf(out,
		"pybpf: %.2f s at %u Hz on the %s: %" PRIu64 " samples asked, %" PRIu64 " taken, %" PRIu64
		" with Python frames; %" PRIu64 " distinct stack%s\n",
		a->duration_s, a->freq, a->source == KERNEL_SOURCE_CYCLES ? "CPU's cycles" : "CPU clock",
		a->counters[PYBPF_COUNT_ASKED], a->taken, a->python, a->stacks, a->stacks == 1 ? "" : "s");
	print_class(a, CLASS_WITHOUT, "without Python frames", 0, out);
	print_class(a, CLASS_LOST, "lost", a->unsent, out);
	print_class(a, CLASS_INCOMPLETE, "incomplete", 0, out);
	print_processes(&a->processes, out);
	if (a->names.unnamed)
		fprintf(out, "pybpf: %" PRIu64 " of %" PRIu64 " code objects could not be named\n", a->names.unnamed,
			a->names.codes);
	if (a->names.no_lines)
		fprintf(out,
			"pybpf: %" PRIu64 " of %" PRIu64
			" code objects are shown without lines: their line table was longer "
			"than %u KiB or not in memory at first sight, and gone when it was read again\n",
			a->names.no_lines, a->names.codes, PYBPF_COPY_LINES >> 10);
	if (a->timed)
		fprintf(out, "pybpf: the time of %" PRIu64 " sample%s was kept, in %" PRIu64 " KiB of memory\n",
			a->timed, a->timed == 1 ? "" : "s", (a->timed_bytes + 1023) / 1024);
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
	const struct {
		const char *key, *text;
		uint64_t value;
	} processes[] = {
		{"seen", "that ran Python", a->processes.seen},
		{"started", "that started during the run", a->processes.started},
		{"several_pythons", "that had more than one Python", a->processes.several},
		{"refused", "left out: a Python that is not supported or not readable", a->processes.refused},
		{"unanswered", "questions about files or memory that had no answer in time", a->processes.unanswered},
		{"missed", "that ended before it was known what they ran", a->processes.missed},
	};
	char group[16];
	int err = 0;

	for (int i = 0; i < PYBPF_NR_COUNTERS && !err; i++) {
		snprintf(group, sizeof(group), "%s", counters[i].group);
		for (char *c = group; *c; c++)
			*c = (char)tolower(*c);
		err = profile_add_account(p, group, counters[i].key, counters[i].text,
					  i == PYBPF_COUNT_PYTHON ? a->python : a->counters[i]);
	}
	err = err ?: profile_add_account(p, "lost", unsent_key, unsent_text, a->unsent);
	for (size_t i = 0; i < sizeof(processes) / sizeof(*processes) && !err; i++)
		err = profile_add_account(p, "processes", processes[i].key, processes[i].text, processes[i].value);
	return err;
}

const char *session_account_source(const struct session_account *a)
{
	return a->source == KERNEL_SOURCE_CYCLES ? "cycles" : "cpu-clock";
}

static void json_class(const struct session_account *a, enum counter_class class, const char *key, FILE *out)
{
	const char *separator = "";

	fprintf(out, "  \"%s\": {", key);
	for (int i = 0; i < PYBPF_NR_COUNTERS; i++) {
		if (counters[i].class != class)
			continue;
		fprintf(out, "%s\"%s\": %" PRIu64, separator, counters[i].key, a->counters[i]);
		separator = ", ";
	}
	if (class == CLASS_LOST)
		fprintf(out, "%s\"%s\": %" PRIu64, separator, unsent_key, a->unsent);
	fputs("},\n", out);
}

static void json_number(const char *key, bool known, double value, const char *end, FILE *out)
{
	if (known)
		fprintf(out, "  \"%s\": %.3f%s\n", key, value, end);
	else
		fprintf(out, "  \"%s\": null%s\n", key, end);
}

void session_account_json(const struct session_account *a, FILE *out)
{
	fputs("{\n", out);
	json_number("duration_s", true, a->duration_s, ",", out);
	fprintf(out,
		"  \"freq_hz\": %u,\n  \"source\": \"%s\",\n"
		"  \"samples\": {\"asked\": %" PRIu64 ", \"taken\": %" PRIu64 ", \"python\": %" PRIu64
		", \"lost\": %" PRIu64 "},\n",
		a->freq, session_account_source(a), a->counters[PYBPF_COUNT_ASKED], a->taken, a->python, a->lost);
	json_class(a, CLASS_LOST, "lost", out);
	json_class(a, CLASS_WITHOUT, "without_python", out);
	json_class(a, CLASS_INCOMPLETE, "incomplete", out);
	fprintf(out,
		"  \"stacks\": %" PRIu64 ",\n  \"code_objects\": {\"seen\": %" PRIu64 ", \"unnamed\": %" PRIu64
		", \"without_lines\": %" PRIu64 "},\n",
		a->stacks, a->names.codes, a->names.unnamed, a->names.no_lines);
	fprintf(out,
		"  \"processes\": {\"seen\": %" PRIu64 ", \"started\": %" PRIu64 ", \"several_pythons\": %" PRIu64
		", \"refused\": %" PRIu64 ", \"unanswered\": %" PRIu64 ", \"missed\": %" PRIu64
		", \"missed_cpu_s\": %.6f, \"missed_samples\": %" PRIu64 ", \"lost_events\": %" PRIu64 "},\n",
		a->processes.seen, a->processes.started, a->processes.several, a->processes.refused,
		a->processes.unanswered, a->processes.missed, (double)a->processes.missed_ns / 1e9,
		a->counters[PYBPF_COUNT_MISSED], a->processes.lost);
	json_number("kernel_ns_per_sample", a->measured, a->kernel_ns_per_sample, ",", out);
	json_number("user_cpu_s", true, a->user_cpu_s, ",", out);
	fprintf(out, "  \"peak_rss_kib\": %" PRId64 ",\n", a->peak_rss_kib);
	json_number("time_to_first_sample_ms", a->time_to_first_sample_ms >= 0, a->time_to_first_sample_ms, "", out);
	fputs("}\n", out);
}
