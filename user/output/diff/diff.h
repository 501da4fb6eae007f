// SPDX-License-Identifier: Apache-2.0
/* The output formats of a comparison; formats.c lists them beside the formats of a profile. */
#ifndef OUTPUT_DIFF_H
#define OUTPUT_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "compare/diff.h"
#include "output/output.h"

struct output_diff_options {
	bool all;      /* also show what did not change */
	bool explain;  /* text: how the result was found, and how sure it is */
	uint32_t rows; /* the most rows of each text table */
};

struct output_diff_format {
	const char *help;
	bool by_line; /* it can show lines in place of functions */
	/* Returns 0 or negative errno; a failed write may also show in ferror(out). */
	int (*write)(const struct diff *d, const struct output_diff_options *options, FILE *out);
};

/* As output_by_name and output_by_path, but only for formats that show comparisons; a path without suffix is text. */
const struct output_format *output_diff_by_name(const char *name);
const struct output_format *output_diff_by_path(const char *path);

/*
 * What changed in one line for each change, and a table; with options->explain, how sure that is and why, and with
 * options->all every function by own and by total samples. At most 80 columns wide. The functions below return 0 or
 * negative errno.
 */
int output_diff_text(const struct diff *d, const struct output_diff_options *options, FILE *out);
/*
 * One line per stack, root;...;leaf BEFORE AFTER, as difffolded.pl writes it and flamegraph.pl reads it: AFTER is the
 * count, BEFORE is scaled so that what did not change is as large as after. Unless options->all is set, BEFORE is set
 * to AFTER if the leaf function has not changed, so that flamegraph.pl does not colour it.
 */
int output_diff_folded(const struct diff *d, const struct output_diff_options *options, FILE *out);
/* All functions, in the unit of the basis; relative changes are numbers such as 0.25, null for what came from nothing.
 */
int output_diff_json(const struct diff *d, const struct output_diff_options *options, FILE *out);
/* The HTML report, with the values of both sides. */
int output_diff_html(const struct diff *d, const struct output_diff_options *options, FILE *out);

/* What the formats share. */

/* Writes what was found: a line for each change, or one that says that none was seen. */
void output_diff_write_headline(const struct diff *d, FILE *out);
/* Return the headline, what it is based on, and both, one sentence per line; the caller frees it. NULL: no memory. */
char *output_diff_headline(const struct diff *d);
char *output_diff_details(const struct diff *d);
char *output_diff_notes(const struct diff *d);
/* Returns the verdict in one word. */
const char *output_diff_verdict(const struct diff_function *function);
/* Writes a relative change such as "+27 %" or, from ten times on, "12 times". */
void output_diff_percent(double change, bool sign, char *text, size_t size);
/* Returns the run's file without its folder, unless another run's file has the same name. */
const char *output_diff_title(const struct diff *d, enum diff_side side, size_t run);

#endif
