// SPDX-License-Identifier: Apache-2.0
/*
 * The text of an object in another process, as repr() writes it where that is known. The process may run meanwhile, and
 * what is read is hostile: each pointer is followed once, lengths, depth and time are bounded, and an object whose
 * parts changed while they were read is PY_VALUE_UNREADABLE.
 */
#ifndef SYMBOLS_PY_VALUE_H
#define SYMBOLS_PY_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/objects/py_out.h"
#include "symbols/walk/walk_user.h"

#define PY_VALUE_UNREADABLE "<unreadable>"
#define PY_VALUE_HIDDEN     PY_OUT_HIDDEN

/* How long texts may be: from 1 to PY_VALUE_LEVELS. */
#define PY_VALUE_LEVELS 3

struct py_values;

struct py_values_of {
	const struct walk_memory *memory;    /* outlives the use */
	const struct pybpf_layout *layout;   /* likewise */
	const struct pybpf_runtime *runtime; /* likewise */
	unsigned level;
	bool show_secrets; /* also what py_is_secret() names */
	bool stopped;      /* the process does not run: what is read does not change */
	uint64_t until_ns; /* on CLOCK_MONOTONIC: nothing is read after it */
};

/* Returns NULL without memory. */
struct py_values *py_values_new(const struct py_values_of *of);
/* Accepts NULL. */
void py_values_free(struct py_values *v);

/*
 * Begins with a variable: what is read from now on leads to its object, and is it. again: with the same one as the last
 * time. The first time only finds out what has to be read.
 */
void py_values_begin(struct py_values *v, bool again);
/*
 * Returns the text of an object, of *size bytes and a NUL, valid until the next call. name: of the variable that has
 * it.
 */
const char *py_values_text(struct py_values *v, const char *name, uint64_t object, size_t *size);
/* Returns the marks of that text. */
const struct py_mark *py_values_marks(const struct py_values *v, uint32_t *count);
/* Returns whether what was read since py_values_begin() was all there at one moment. */
bool py_values_hold(struct py_values *v);
/* Returns how often to begin with the variable that was read last, in all, if it never holds. */
unsigned py_values_worth(const struct py_values *v);
/* Returns whether the time is over. */
bool py_values_are_over(const struct py_values *v);
/* Reads through the limits of time. Returns as struct walk_memory. */
int py_values_read(struct py_values *v, uint64_t addr, void *dst, size_t size);
/* Returns whether the object is a cell, and then what it has in *content, 0 for nothing. */
bool py_values_open_cell(struct py_values *v, uint64_t object, uint64_t *content);
/* Writes the name of an exception's class, or of the class if the object is one. Returns false if it is neither. */
bool py_values_exception(struct py_values *v, uint64_t object, char *name, size_t size);
/* Returns a string as UTF-8, which the caller frees, or NULL. */
char *py_values_name(struct py_values *v, uint64_t object);

#endif
