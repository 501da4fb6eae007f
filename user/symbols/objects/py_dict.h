// SPDX-License-Identifier: Apache-2.0
/* Reads dicts and attributes of objects from a process that runs meanwhile. */
#ifndef SYMBOLS_PY_DICT_H
#define SYMBOLS_PY_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/* Bits of tp_flags that say what an object is (Include/object.h of 2.7 to 3.15). */
enum py_kind {
	PY_KIND_INT = PYBPF_TPFLAGS_INT_SUBCLASS, /* 2.7 */
	PY_KIND_LONG = PYBPF_TPFLAGS_LONG_SUBCLASS,
	PY_KIND_BYTES = PYBPF_TPFLAGS_BYTES_SUBCLASS, /* 2.7's str */
	PY_KIND_TEXT = PYBPF_TPFLAGS_UNICODE_SUBCLASS,
	PY_KIND_DICT = PYBPF_TPFLAGS_DICT_SUBCLASS,
};

struct py_reader {
	const struct walk_memory *memory;
	const struct pybpf_layout *layout;
};

/* The entries of a dict, or the attributes of an object. */
struct py_dict {
	uint64_t entries;
	uint64_t values; /* of a split table: an array of pointers; else 0 */
	uint32_t count;
	bool hashed; /* an entry begins with its key's hash */
};

/* Each returns false when that cannot be read, or is not what it should be. */

bool py_read_u64(const struct py_reader *r, uint64_t addr, uint64_t *out);
/* Returns the bytes before an object's own fields: of its reference count and type. */
uint32_t py_header_size(const struct py_reader *r);
bool py_is_a(const struct py_reader *r, uint64_t object, enum py_kind kind);
bool py_open_dict(const struct py_reader *r, uint64_t object, struct py_dict *dict);
enum py_found {
	PY_UNREADABLE,
	PY_NOTHING, /* it has none */
	PY_FOUND,
};
/* Opens the attributes that an object has in a dict, or in place of one. */
enum py_found py_find_attributes(const struct py_reader *r, uint64_t object, struct py_dict *dict);
bool py_open_attributes(const struct py_reader *r, uint64_t object, struct py_dict *dict);
/* Most attributes of an object whose order is read (SHARED_KEYS_MAX_SIZE is 30). */
#define PY_ORDER_MAX 64
struct py_order {
	uint8_t count, entries[PY_ORDER_MAX]; /* indices of the table's entries */
};
/*
 * Reads the order in which the entries of a split table were set, which objects of a class have each of their own from
 * 3.11 on. The entries of others are in the order of the table: count is 0.
 */
bool py_read_order(const struct py_reader *r, const struct py_dict *dict, struct py_order *out);
/* Finds the value of a string; *value is not 0. */
bool py_find_text(const struct py_reader *r, const struct py_dict *dict, const char *key, uint64_t *value);
/* Opens the names of a module that the interpreter has imported. */
bool py_open_module(const struct py_reader *r, uint64_t interp, const char *name, struct py_dict *dict);
/* Finds the value of a key of bytes. */
bool py_find_bytes(const struct py_reader *r, const struct py_dict *dict, const char *key, uint64_t *value);
/* Finds the value of an int from 0 to 2^61 - 2, whose hash is the int itself, in a dict of ints only. */
bool py_find_int(const struct py_reader *r, const struct py_dict *dict, uint64_t key, uint64_t *value);
/* Finds the value of a key that is this object. */
bool py_find_object(const struct py_reader *r, const struct py_dict *dict, uint64_t key, uint64_t *value);
/* Reads an int from 0 to 2^60 - 1. */
bool py_read_int(const struct py_reader *r, uint64_t object, uint64_t *out);
/* Reads at most `room` of an object's bytes. */
bool py_read_bytes(const struct py_reader *r, uint64_t object, char *out, size_t room, size_t *size);

#endif
