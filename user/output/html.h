// SPDX-License-Identifier: Apache-2.0
/* What the HTML report takes from a comparison of two profiles. output_html.c has the contract of its data. */
#ifndef OUTPUT_HTML_H
#define OUTPUT_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"

/* What became of a function's total share of all samples, from before to after. */
enum html_verdict {
	HTML_SHRANK = -1,
	HTML_NOISE = 0, /* the change may be none */
	HTML_GREW = 1,
};

struct html_diff_function {
	const char *name, *file;        /* as frames have them */
	double before, after;           /* share of all samples that have the function on their stack, 0 to 1 */
	double self_before, self_after; /* share of all samples that are in it, 0 to 1 */
	double low, high;               /* confidence interval of after - before */
	enum html_verdict verdict;
};

struct html_diff {
	const char *before_name, *after_name; /* of the profiles, e.g. their files */
	const uint64_t *before;               /* for each sample of the profile: its value before */
	double confidence;                    /* of the intervals, e.g. 0.95 */
	const struct html_diff_function *functions;
	size_t nr_functions;
};

/*
 * Writes the report. The profile's own values are those after, diff->before has those before, with zeros where a stack
 * is on one side only; the report normalises both by their totals. diff: NULL for a report of one profile.
 * Returns 0 or negative errno; a failed write may also show in ferror(out).
 */
int html_report(const struct profile *p, const struct html_diff *diff, FILE *out);

#endif
