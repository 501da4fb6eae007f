// SPDX-License-Identifier: Apache-2.0
/*
 * Finds some attributes of many objects at once, by their names: in dicts, inline, and in __slots__. A text is compared
 * once, and known by its address from then on: so this is for a short while, of which nothing is kept.
 */
#ifndef SYMBOLS_PY_NAMES_H
#define SYMBOLS_PY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

struct py_values;

/* Most names. */
#define PY_NAMES_MAX 32

/* py_names_init() makes it. */
struct py_names {
	const char *const *names;
	size_t count;
	struct intern keys;  /* of dicts, by their addresses */
	struct intern types; /* and where the slots of their objects are */
};

/* names: at most PY_NAMES_MAX, which outlive the use. */
void py_names_init(struct py_names *n, const char *const *names, size_t count);
/* Forgets all addresses. */
void py_names_forget(struct py_names *n);
/*
 * Writes the attributes of an object whose class a program made, each at its name's place, 0 for none. Returns false if
 * it cannot be read, or is no such object.
 */
bool py_names_find(struct py_names *n, struct py_values *v, uint64_t object, uint64_t *values);

#endif
