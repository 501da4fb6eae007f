// SPDX-License-Identifier: Apache-2.0
/* The HTML report, and the results of a comparison that it shows. html.c describes the data in the page. */
#ifndef OUTPUT_HTML_H
#define OUTPUT_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"

/* The change of a function's own samples, from before to after. */
enum html_verdict {
	HTML_SHRANK = -1,
	HTML_NOISE = 0, /* no change is named */
	HTML_GREW = 1,
};

struct html_diff_function {
	const char *name, *file;        /* as in the frames of the profile */
	double before, after;           /* of the samples that have the function on their stack, in the diff's unit */
	double self_before, self_after; /* of the samples that have it on top of their stack */
	double change, low, high;       /* relative change of own samples, and its interval */
	double noticeable;              /* the smallest relative change that would have been named */
	const char *words;              /* the verdict in one word */
	enum html_verdict verdict;
};

struct html_diff {
	const char *before_name, *after_name; /* of the profiles, e.g. their files */
	const uint64_t *before;               /* for each sample of the profile: its value before */
	const char *unit;                     /* of values: "share", 0 to 1; "s"; "ms/s" */
	double before_unit, after_unit;       /* what a value of 1 is in that unit */
	double confidence;                    /* of the intervals, e.g. 0.95 */
	const char *notes;                    /* sentences, one per line */
	const struct html_diff_function *functions;
	size_t nr_functions;
};

/*
 * Writes the report. diff: NULL for a report of one profile; else the values of the profile's samples are those after,
 * and diff->before has those before: a stack that is on one side only has the value 0 on the other. Returns 0 or
 * negative errno; a failed write may also show in ferror(out).
 */
int html_report(const struct profile *p, const struct html_diff *diff, FILE *out);

#endif
