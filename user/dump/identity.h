// SPDX-License-Identifier: Apache-2.0
/* Which of the values of a snapshot are one object: addresses where that is not clear, and each text once in a thread.
 */
#ifndef DUMP_IDENTITY_H
#define DUMP_IDENTITY_H

#include <stdio.h>

#include "base/intern.h"
#include "dump/locals.h"

struct dump_process;

/*
 * Counts the objects in the values of the process that are described alike, such as those of one class. Returns 0 or
 * -ENOMEM.
 */
int dump_count_alike(struct dump_process *process);

/* The values that were printed of a thread. */
struct dump_above {
	struct intern values, names;
};
void dump_above_init(struct dump_above *above);
void dump_above_free(struct dump_above *above);

/*
 * Prints a variable's value. Objects have their addresses where the snapshot has another object with the same
 * description; a value that was printed above with the same text is shortened.
 */
void dump_print_value(const struct dump_process *process, const struct dump_local *local, struct dump_above *above,
		      FILE *out);

#endif
