// SPDX-License-Identifier: Apache-2.0
/* A comparison of two profiles as text or file: what rows of the registry in formats.c have beside a profile's. */
#ifndef OUTPUT_DIFF_H
#define OUTPUT_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "compare/diff.h"
#include "output/output.h"

struct output_diff_options {
	bool all;      /* what is within the noise is shown as well */
	uint32_t rows; /* of each table of text */
};

struct output_diff_format {
	const char *help;
	bool by_line;     /* it can show lines */
	bool shares_only; /* it shows nothing but shares */
	/* Returns 0 or negative errno; a failed write may also show in ferror(out). */
	int (*write)(const struct diff *d, const struct output_diff_options *options, FILE *out);
};

/* As output_by_name and output_by_path: formats of a comparison only, and a path without suffix is text. */
const struct output_format *output_diff_by_name(const char *name);
const struct output_format *output_diff_by_path(const char *path);

/* Tables of functions, or lines, by their own samples and by all that they were on the stack of. */
int output_diff_text(const struct diff *d, const struct output_diff_options *options, FILE *out);
/*
 * One line per stack, root;...;leaf BEFORE AFTER, as difffolded.pl writes and flamegraph.pl reads: AFTER is the count,
 * BEFORE is normalised to it. Where neither the stack nor its leaf function has changed beyond the noise BEFORE is set
 * to AFTER, so that flamegraph.pl does not colour it, unless options->all.
 */
int output_diff_folded(const struct diff *d, const struct output_diff_options *options, FILE *out);
/* The HTML report, with what is before beside what is after. */
int output_diff_html(const struct diff *d, const struct output_diff_options *options, FILE *out);

#endif
