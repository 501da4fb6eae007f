// SPDX-License-Identifier: Apache-2.0
#include "output/diff.h"

#include <string.h>

static const struct output_diff_format formats[] = {
	{
		.name = "text",
		.suffix = ".txt",
		.help = "tables of the functions (--by=line: lines) that grew or shrank",
		.by_line = true,
		.write = output_diff_text,
	},
	{
		.name = "folded",
		.suffix = ".folded",
		.help = "one line per stack, root;...;leaf BEFORE AFTER, for flamegraph.pl",
		.by_line = true,
		.write = output_diff_folded,
	},
	{
		.name = "html",
		.suffix = ".html",
		.help = "differential flame graph, one file for any browser",
		.shares_only = true,
		.write = output_diff_html,
	},
	{0},
};

const struct output_diff_format *output_diff_formats(void)
{
	return formats;
}

const struct output_diff_format *output_diff_by_name(const char *name)
{
	for (const struct output_diff_format *f = formats; f->name; f++) {
		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

const struct output_diff_format *output_diff_by_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

	if (!dot)
		return &formats[0];
	for (const struct output_diff_format *f = formats; f->name; f++) {
		if (strcmp(f->suffix, dot) == 0)
			return f;
	}
	return NULL;
}
