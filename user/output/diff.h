// SPDX-License-Identifier: Apache-2.0
/* The output formats of a comparison of two profiles; formats.c lists them beside the formats of a profile. */
#ifndef OUTPUT_DIFF_H
#define OUTPUT_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "compare/diff.h"
#include "output/output.h"

struct output_diff_options {
	bool all;      /* also show what is within the noise */
	uint32_t rows; /* the most rows of each text table */
};

struct output_diff_format {
	const char *help;
	bool by_line;     /* it can show lines in place of functions */
	bool shares_only; /* it can show shares only, not rates or times */
	/* Returns 0 or negative errno; a failed write may also show in ferror(out). */
	int (*write)(const struct diff *d, const struct output_diff_options *options, FILE *out);
};

/* As output_by_name and output_by_path, but only for formats that show comparisons; a path without suffix is text. */
const struct output_format *output_diff_by_name(const char *name);
const struct output_format *output_diff_by_path(const char *path);

/*
 * Two tables of functions, or lines: by self samples, and by total samples, in which they were anywhere on the stack.
 * The functions below return 0 or negative errno.
 */
int output_diff_text(const struct diff *d, const struct output_diff_options *options, FILE *out);
/*
 * One line per stack, root;...;leaf BEFORE AFTER, as difffolded.pl writes it and flamegraph.pl reads it: AFTER is the
 * count, BEFORE is scaled to the total of the profile after. Unless options->all is set, BEFORE is set to AFTER if
 * neither the stack nor its leaf function has changed beyond the noise, so that flamegraph.pl does not colour it.
 */
int output_diff_folded(const struct diff *d, const struct output_diff_options *options, FILE *out);
/* The HTML report, with the values of both profiles. */
int output_diff_html(const struct diff *d, const struct output_diff_options *options, FILE *out);

#endif
