// SPDX-License-Identifier: Apache-2.0
/* Which variables the frames of a code object have, and where in the frame. */
#ifndef DUMP_VARIABLES_H
#define DUMP_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/objects/py_value.h"

enum dump_local_kind {
	DUMP_LOCAL_ARGUMENT,
	DUMP_LOCAL_LOCAL,
	DUMP_LOCAL_CELL, /* a local that inner functions use, too */
	DUMP_LOCAL_FREE, /* an outer function's */
	/* In place of a frame's variables: */
	DUMP_LOCAL_MOVING, /* the frame was left, or may have been, while they were read */
	DUMP_LOCAL_BEYOND, /* the limits of size or time were met before */
	DUMP_LOCAL_KINDS,
};

/* Most variables of a frame that are looked at. */
#define DUMP_VARIABLES_MAX 1024

struct dump_variable {
	char *name;
	uint32_t slot;
	uint8_t kind;    /* enum dump_local_kind */
	bool is_in_cell; /* the slot has a cell, once the function has begun */
};

struct dump_variables {
	uint64_t code;
	size_t count;
	struct dump_variable items[DUMP_VARIABLES_MAX];
};

/* Reads the variables of a code object, in the order of its arguments and locals. Returns whether that is possible. */
bool dump_variables_read(struct py_values *v, const struct pybpf_layout *layout, uint64_t code,
			 struct dump_variables *out);
/* Frees the names. */
void dump_variables_free(struct dump_variables *variables);

#endif
