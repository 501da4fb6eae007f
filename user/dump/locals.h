// SPDX-License-Identifier: Apache-2.0
/*
 * The variables of a thread's frames with their values as text. A helper reads and packs them; what it packed is not
 * trusted, because the bytes come from the process.
 */
#ifndef DUMP_LOCALS_H
#define DUMP_LOCALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dump/variables.h"
#include "symbols/walk/walk_user.h"

/* Most bytes of the variables of a thread. */
#define DUMP_LOCALS_MAX (512 * 1024)

struct dump_locals_wanted {
	unsigned level; /* 0: none; to PY_VALUE_LEVELS: longer values */
	bool show_secrets;
};

/* One variable, or what stands in place of a frame's. */
struct dump_local {
	uint32_t frame; /* of struct walk_stack, whose first is the leaf */
	enum dump_local_kind kind;
	const char *name, *text; /* "" where the kind has none; within the packed bytes */
	uint64_t object;         /* address of the value; 0: not known */
	const void *marks;       /* struct py_mark, without alignment, as in struct py_out */
	uint32_t nr_marks;
};
static inline struct py_mark dump_local_mark(const struct dump_local *local, uint32_t i)
{
	struct py_mark mark;

	memcpy(&mark, (const char *)local->marks + i * sizeof(mark), sizeof(mark));
	return mark;
}

struct dump_locals {
	void *bytes; /* packed, those of the leaf first */
	size_t size;
};

/* Reads the variables of all frames into room bytes. Returns how many it wrote. */
size_t dump_locals_read(const struct py_values_of *of, const struct walk_stack *stack, void *out, size_t room);

/*
 * Takes back the variables of the frames that were left meanwhile: those that `again`, the stack read after them, does
 * not have. Returns the bytes that are left.
 */
size_t dump_locals_keep_same(void *bytes, size_t size, const struct walk_stack *stack, const struct walk_stack *again);

/* Takes the next one from *at on; returns false at the end, or where they are not sound. */
bool dump_locals_next(const struct dump_locals *locals, size_t *at, struct dump_local *out);

#endif
