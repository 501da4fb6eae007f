// SPDX-License-Identifier: Apache-2.0
/* An interval as a line of JSON; docs/top.md describes it. */
#ifndef TOP_JSONL_H
#define TOP_JSONL_H

#include <stdio.h>

#include "top/model.h"

struct top_jsonl {
	unsigned freq;    /* Hz */
	uint32_t rows;    /* most rows of each table */
	double uptime_s;  /* of the run */
	uint64_t time_ns; /* since 1970: the end of the interval */
};

/* Writes the last interval, and flushes. ferror(out) tells failures. */
void top_jsonl_write(const struct top_model *m, const struct top_jsonl *facts, FILE *out);

#endif
