// SPDX-License-Identifier: Apache-2.0
#include "output/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct output_format formats[] = {
	{
		.name = "folded",
		.alias = "raw",
		.suffixes = ".folded .raw",
		.help = "one line per stack, root;...;leaf COUNT",
		.write = output_folded,
	},
	{
		.name = "text",
		.suffixes = ".txt",
		.help = "table of functions (--by=line: of lines) by their own and their total samples",
		.by_line = true,
		.write = output_text,
	},
	{
		.name = "html",
		.suffixes = ".html .htm",
		.help = "interactive report in one file: flame graphs, time line, table, sources",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES | OUTPUT_SOURCES,
		.write = output_html,
	},
	{
		.name = "pybpf",
		.suffixes = ".pybpf",
		.help = "everything, for `pybpf report` and `pybpf diff`",
		.needs = OUTPUT_THREADS | OUTPUT_SOURCES | OUTPUT_BINARY,
		.write = output_pybpf,
	},
	{
		.name = "pprof",
		.suffixes = ".pb.gz .pprof",
		.help = "for `go tool pprof`, by line; processes, threads and containers are labels",
		.needs = OUTPUT_THREADS | OUTPUT_BINARY,
		.write = output_pprof,
	},
	{
		.name = "callgrind",
		.suffixes = ".callgrind",
		.help = "for kcachegrind and callgrind_annotate; calls are samples of the call",
		.write = output_callgrind,
	},
	{
		.name = "pstats",
		.suffixes = ".pstats .prof",
		.help = "for Python's pstats and snakeviz; calls are samples of the function",
		.needs = OUTPUT_BINARY,
		.write = output_pstats,
	},
	{
		.name = "json",
		.suffixes = ".json",
		.help = "all of the profile, as tables in one document",
		.needs = OUTPUT_THREADS,
		.write = output_json,
	},
	{
		.name = "jsonl",
		.suffixes = ".jsonl .ndjson",
		.help = "each sample on a line of its own, as JSON",
		.needs = OUTPUT_THREADS,
		.write = output_jsonl,
	},
	{
		.name = "svg",
		.suffixes = ".svg",
		.help = "flame graph as a static image (--by=line: of lines)",
		.by_line = true,
		.write = output_svg,
	},
	{
		.name = "speedscope",
		.suffixes = ".speedscope.json .speedscope",
		.help = "for speedscope.app: a timeline for each thread",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES,
		.write = output_speedscope,
	},
	{
		.name = "gecko",
		.alias = "firefox",
		.suffixes = ".gecko.json .gecko",
		.help = "for profiler.firefox.com: a timeline for each thread",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES,
		.write = output_gecko,
	},
	{
		.name = "chrometrace",
		.suffixes = ".trace.json .chrometrace",
		.help = "for Perfetto and chrome://tracing: slices of each thread",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES,
		.write = output_chrometrace,
	},
	{
		.name = "perf-script",
		.alias = "perf",
		.suffixes = ".perf-script .perf",
		.help = "text as perf script prints it: a record for each sample",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES,
		.write = output_perfscript,
	},
	{0},
};

const struct output_format *output_formats(void)
{
	return formats;
}

const struct output_format *output_by_name(const char *name)
{
	for (const struct output_format *f = formats; f->name; f++) {
		if (strcmp(f->name, name) == 0 || (f->alias && strcmp(f->alias, name) == 0))
			return f;
	}
	return NULL;
}

/* The length of the longest of the suffixes that the name ends in, 0 for none. */
static size_t suffix_of(const char *name, const char *suffixes)
{
	size_t length = strlen(name), longest = 0;

	for (const char *s = suffixes; *s;) {
		size_t n = strcspn(s, " ");

		if (n > longest && n < length && strncmp(name + length - n, s, n) == 0)
			longest = n;
		s += n + (s[n] == ' ');
	}
	return longest;
}

const struct output_format *output_by_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const struct output_format *found = NULL;
	size_t longest = 0;

	if (!strchr(base, '.'))
		return &formats[0];
	for (const struct output_format *f = formats; f->name; f++) {
		size_t n = suffix_of(base, f->suffixes);

		if (n > longest) {
			longest = n;
			found = f;
		}
	}
	return found;
}

void output_escaped(const char *text, FILE *out)
{
	const char *from = text; /* what is not yet written, and stands for itself */

	while (*text) {
		bool plain;
		size_t len = text_character(text, &plain);

		if (plain && *text != '\\' && *text != ';') {
			text += len;
			continue;
		}
		fwrite(from, 1, (size_t)(text - from), out);
		if (*text == '\\')
			fputs("\\\\", out);
		for (size_t i = 0; i < len && *text != '\\'; i++)
			fprintf(out, "\\x%02x", (unsigned char)text[i]);
		text += len;
		from = text;
	}
	fwrite(from, 1, (size_t)(text - from), out);
}

char *output_process_label(const struct profile *p, uint32_t process)
{
	const struct profile_process *owner = profile_process(p, process);
	const char *name = profile_string(p, owner->name);
	char *label = NULL;
	int n;

	if (owner->inner_pid)
		n = asprintf(&label, "%s (%d, %d inside)", name, owner->pid, owner->inner_pid);
	else if (owner->pid)
		n = asprintf(&label, "%s (%d)", name, owner->pid);
	else
		n = asprintf(&label, "%s", name);
	return n < 0 ? NULL : label;
}

int output_roots(const struct profile *p, const struct profile_sample *sample, char *labels[OUTPUT_ROOTS])
{
	unsigned roots = profile_roots(p);
	int n = 0;

	if (roots & PROFILE_ROOT_CONTAINER) {
		uint32_t container = profile_process(p, sample->process)->container;

		labels[n++] = strdup(container ? profile_string(p, container) : "[host]");
	}
	if (roots & PROFILE_ROOT_PROCESS)
		labels[n++] = output_process_label(p, sample->process);
	if (roots & PROFILE_ROOT_THREAD && sample->thread != PROFILE_NONE) {
		const struct profile_thread *thread = profile_thread(p, sample->thread);

		if (asprintf(&labels[n], "%s (%d)", profile_string(p, thread->name), thread->tid) < 0)
			labels[n] = NULL;
		n++;
	}
	for (int i = 0; i < n; i++) {
		if (labels[i])
			continue;
		for (i = 0; i < n; i++)
			free(labels[i]);
		return -ENOMEM;
	}
	return n;
}

void output_frame(const struct profile *p, uint32_t frame, FILE *out)
{
	const struct profile_frame *f = profile_frame(p, frame);
	const char *file = profile_string(p, f->file);

	output_escaped(profile_string(p, f->name), out);
	if (!*file)
		return;
	fputs(" (", out);
	output_escaped(file, out);
	if (f->line != PROFILE_NO_LINE)
		fprintf(out, ":%d", f->line);
	fputc(')', out);
}

void output_account_entry(const struct profile *p, const struct profile_account *entry, FILE *out)
{
	const char *text = profile_string(p, entry->text);

	output_escaped(profile_string(p, entry->group), out);
	fprintf(out, ": %" PRIu64 " ", entry->value);
	output_escaped(*text ? text : profile_string(p, entry->key), out);
}
