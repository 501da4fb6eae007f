// SPDX-License-Identifier: Apache-2.0
/* The HTML report, of one profile or of a comparison. html.c describes the data in the page. */
#ifndef OUTPUT_HTML_H
#define OUTPUT_HTML_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "profile/profile.h"

/* A comparison. The samples' values are those after; a stack that is on one side only has the value 0 on the other. */
struct html_sides {
	const uint64_t *before;                         /* for each sample of the profile: its value before */
	void (*write)(struct json *j, const void *arg); /* writes the member "diff" of the data */
	const void *arg;
};

/*
 * Writes the report. sides: NULL for a report of one profile. Returns 0 or negative errno; a failed write may also show
 * in ferror(out).
 */
int html_report(const struct profile *p, const struct html_sides *sides, FILE *out);

#endif
