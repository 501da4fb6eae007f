// SPDX-License-Identifier: Apache-2.0
/* The rows of the table of waits. */
#ifndef OUTPUT_WAITS_H
#define OUTPUT_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "output/formats/text_table.h"
#include "base/intern.h"

/* Groups; PROFILE_NONE: no function. */
struct wait_key {
	uint32_t wait;   /* PROFILE_NONE: for processes, each with a group of its own */
	uint32_t kind;   /* of profile_child_kind() */
	uint32_t own;    /* the nearest function that is the program's own */
	uint32_t waiter; /* the innermost function */
	uint32_t task;   /* whether a suspended task waits, and no thread */
};

struct wait_row {
	struct wait_key key;
	uint64_t value, count, longest;
	uint32_t index;     /* among the rows as they were found */
	uint32_t first;     /* the first group of them: its name is the row's, if it is the only one */
	uint32_t processes; /* that are waited for, where each has a group of its own */
	bool idle;          /* waits for work, which are the last row */
};

/* A process that a row's waits are for. */
struct awaited {
	uint32_t row, wait; /* wait: its group */
};

struct waits {
	const struct text_table *table;
	struct intern rows;      /* struct wait_row */
	struct intern processes; /* struct awaited */
	uint32_t *of_stack;      /* the row of each stack; PROFILE_NONE: it is no wait */
	struct wait_row *sorted;
	uint32_t count;      /* of them */
	bool counted, timed; /* it is known how many waits there were, and how long each was */
};

/* Finds the rows, in the order that the options tell. Returns 0 or -ENOMEM; they are to be freed in both cases. */
int output_waits_collect(struct waits *w, const struct text_table *t);
/*
 * Adds up rows that look alike. first: for each of the sorted ones the first that looks as it does. Returns 0 or
 * -ENOMEM.
 */
int output_waits_add_up(struct waits *w, const uint32_t *first);
void output_waits_free(struct waits *w);

#endif
