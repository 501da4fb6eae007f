// SPDX-License-Identifier: Apache-2.0
/* The HTML report, and the results of a comparison that it shows. html.c describes the data in the page. */
#ifndef OUTPUT_HTML_H
#define OUTPUT_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"

/* The change of a function's total share of all samples, from before to after. */
enum html_verdict {
	HTML_SHRANK = -1,
	HTML_NOISE = 0, /* the difference may be chance */
	HTML_GREW = 1,
};

struct html_diff_function {
	const char *name, *file;        /* as in the frames of the profile */
	double before, after;           /* share of all samples that have the function on their stack, 0 to 1 */
	double self_before, self_after; /* share of all samples that have it on top of their stack, 0 to 1 */
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
 * Writes the report. The values of the profile's samples are those after, and diff->before has those before; a stack
 * that is on one side only has the value 0 on the other. The report divides both by their totals. diff: NULL for a
 * report of one profile.
 * Returns 0 or negative errno; a failed write may also show in ferror(out).
 */
int html_report(const struct profile *p, const struct html_diff *diff, FILE *out);

#endif
