// SPDX-License-Identifier: Apache-2.0
/* What the parts of the format "text" share. */
#ifndef OUTPUT_TEXT_TABLE_H
#define OUTPUT_TEXT_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/output.h"
#include "profile/groups.h"
#include "profile/totals.h"

/* A function, or a line. */
struct text_row {
	uint64_t self, total, own; /* own: as OUTPUT_SORT_OWN says */
	uint32_t group;
	uint32_t from, more; /* of a library's function: the group with the program's own function that calls it most
				(PROFILE_NONE: none), and how many others do */
};

struct text_table {
	const struct profile *profile;
	struct profile_totals totals;
	struct profile_groups groups;
	uint32_t *own;         /* by stack: of profile_nearest_own() */
	struct text_row *rows; /* of functions */
	uint32_t count;
	uint64_t all;
	int width; /* of numbers */
	struct output_options options;
};

/* Writes the name of what is measured, as the head of a column of numbers. */
void output_text_measure(const struct text_table *t, FILE *out);
/* Returns a share in percent. */
double output_text_percent(uint64_t part, uint64_t all);
/*
 * Returns the columns that a line has behind `used` ones, at least OUTPUT_COLUMN_LEAST; 0: no terminal, any number.
 */
size_t output_text_room(const struct text_table *t, size_t used);
/* Returns an escaped text in at most width columns, which the caller frees; 0: whole. NULL: no memory. */
char *output_text_printed(const char *text, size_t width);

/*
 * Writes the table of processes and an empty line: each with its samples, or, where who started them is among the
 * roots, below that one, with its own samples and those of all below it. Returns 0 or -ENOMEM.
 */
int output_text_processes(const struct text_table *t, FILE *out);

/*
 * Writes the table of waits, if there are any, and an empty line: for each wait in the same functions how long, how
 * often, and in which function of the program's own. Returns 0 or -ENOMEM.
 */
int output_text_waits(const struct text_table *t, FILE *out);

/*
 * Writes the table of threads, and an empty line, if samples have threads: each with its states and the function with
 * most of its time, or what its waits are for. Returns 0 or -ENOMEM.
 */
int output_text_threads(const struct text_table *t, FILE *out);

/*
 * Writes the table of compiled code and an empty line, if samples are in any: each library or extension module with
 * what its functions took themselves, and the nearest function of the program's own that has most of that. Returns 0 or
 * -ENOMEM.
 */
int output_text_compiled(const struct text_table *t, FILE *out);

/*
 * Adds each stack's value to the row of the nearest function of the program's own, and finds for rows of libraries
 * which of these have called them. row_of: the row of each stack. Returns 0 or -ENOMEM.
 */
int output_text_add_own(struct text_table *t, const uint32_t *row_of);

#endif
