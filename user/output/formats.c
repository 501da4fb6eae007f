// SPDX-License-Identifier: Apache-2.0
/* The table of all output formats, of a profile and of a comparison, and the search by name and path. */
#include <string.h>

#include "base/text.h"
#include "output/diff/diff.h"
#include "output/output.h"

static const struct output_format formats[] = {
	{
		.name = "folded",
		.alias = "raw",
		.suffixes = ".folded .raw",
		.help = "one line per stack, root;...;leaf COUNT",
		.by_expression = true,
		.frame_marks = true,
		.write = output_folded,
		.diff =
			&(const struct output_diff_format){
				.help = "one line per stack, root;...;leaf BEFORE AFTER, for flamegraph.pl",
				.by_line = true,
				.write = output_diff_folded,
			},
	},
	{
		.name = "text",
		.suffixes = ".txt",
		.help = "table of functions (--by=line: of lines, --by=expression) by their own and total samples",
		.by_line = true,
		.by_state = true,
		.for_people = true,
		.rows = true,
		.by_expression = true,
		.write = output_text,
		.diff =
			&(const struct output_diff_format){
				.help = "the functions (--by=line: lines) that grew or shrank",
				.by_line = true,
				.write = output_diff_text,
			},
	},
	{
		.name = "html",
		.suffixes = ".html .htm",
		.help = "interactive report in one file: flame graphs, time line, table, sources",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES | OUTPUT_SOURCES,
		.by_expression = true,
		.has_columns = true,
		.for_people = true,
		.write = output_html,
		.diff =
			&(const struct output_diff_format){
				.help = "differential flame graph, one file for any browser",
				.write = output_diff_html,
			},
	},
	{
		.name = "pybpf",
		.suffixes = ".pybpf",
		.help = "everything, for `pybpf report` and `pybpf diff`",
		.needs = OUTPUT_THREADS | OUTPUT_SOURCES | OUTPUT_BINARY | OUTPUT_KEEPS,
		.by_expression = true,
		.has_columns = true,
		.write = output_pybpf,
	},
	{
		.name = "pprof",
		.suffixes = ".pb.gz .pprof",
		.help = "for `go tool pprof`, by line; processes, threads and containers are labels",
		.needs = OUTPUT_THREADS | OUTPUT_BINARY,
		.by_expression = true,
		.has_columns = true,
		.write = output_pprof,
	},
	{
		.name = "otlp",
		.suffixes = ".otlp",
		.help = "OpenTelemetry's profiles, as a collector takes them by HTTP",
		.needs = OUTPUT_THREADS | OUTPUT_BINARY,
		.by_expression = true,
		.has_columns = true,
		.write = output_otlp,
	},
	{
		.name = "callgrind",
		.suffixes = ".callgrind",
		.help = "for kcachegrind and callgrind_annotate, in microseconds of CPU time",
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
		.help = "the whole profile, as tables in one document",
		.needs = OUTPUT_THREADS,
		.by_expression = true,
		.has_columns = true,
		.write = output_json,
		.diff =
			&(const struct output_diff_format){
				.help = "every function (--by=line: line) with its verdict, in one document",
				.by_line = true,
				.write = output_diff_json,
			},
	},
	{
		.name = "jsonl",
		.suffixes = ".jsonl .ndjson",
		.help = "each sample on a line of its own, as JSON, for databases; several profiles are not added up",
		.needs = OUTPUT_THREADS,
		.separate = true,
		.by_expression = true,
		.has_columns = true,
		.write = output_jsonl,
	},
	{
		.name = "svg",
		.suffixes = ".svg",
		.help = "flame graph as a static image (--by=line: of lines)",
		.by_line = true,
		.by_expression = true,
		.for_people = true,
		.write = output_svg,
	},
	{
		.name = "speedscope",
		.suffixes = ".speedscope.json .speedscope",
		.help = "for speedscope.app: a timeline for each thread",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES,
		.by_expression = true,
		.has_columns = true,
		.write = output_speedscope,
	},
	{
		.name = "gecko",
		.alias = "firefox",
		.suffixes = ".gecko.json .gecko",
		.help = "for profiler.firefox.com: a timeline for each thread",
		.needs = OUTPUT_THREADS | OUTPUT_TIMES,
		.by_expression = true,
		.has_columns = true,
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

/* Returns the length of the longest suffix in the list that the name ends in, 0 if it ends in none of them. */
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
	const char *base = text_base_name(path);
	const struct output_format *found = NULL;
	size_t longest = 0;

	if (!strchr(base, '.'))
		return output_by_name("folded");
	for (const struct output_format *f = formats; f->name; f++) {
		size_t n = suffix_of(base, f->suffixes);

		if (n > longest) {
			longest = n;
			found = f;
		}
	}
	return found;
}

const struct output_format *output_diff_by_name(const char *name)
{
	const struct output_format *format = output_by_name(name);

	return format && format->diff ? format : NULL;
}

const struct output_format *output_diff_by_path(const char *path)
{
	const struct output_format *format =
		strchr(text_base_name(path), '.') ? output_by_path(path) : output_by_name("text");

	return format && format->diff ? format : NULL;
}
