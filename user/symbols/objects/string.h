// SPDX-License-Identifier: Apache-2.0
/* Decodes CPython's strings from bytes of memory to UTF-8. Accesses no process. */
#ifndef SYMBOLS_STRING_H
#define SYMBOLS_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"

/* Bytes of a string object that pysym_string_read_shape needs. */
#define PYSYM_STRING_HEADER 64
/* Longest string that is decoded, in bytes of the target's memory; longer ones are cut there. */
#define PYSYM_STRING_MAX (64 * 1024)

struct pysym_string_shape {
	uint32_t data_offset; /* from the object's start */
	uint32_t data_size;   /* bytes, at most PYSYM_STRING_MAX */
	uint8_t unit;         /* bytes per character: 1, 2 or 4 */
	bool latin1;          /* unit 1: Latin-1 (true) or ASCII/bytes (false) */
	bool cut;             /* the string is longer than PYSYM_STRING_MAX */
};

/*
 * Locates the characters of a string object (a compact PEP 393 string, or 2.7's str) from its first PYSYM_STRING_HEADER
 * bytes. Returns 0, -ENOTSUP for a legacy non-compact string, or -EBADMSG when the header is not one of CPython's.
 */
int pysym_string_read_shape(const struct pybpf_layout *layout, const uint8_t header[PYSYM_STRING_HEADER],
			    struct pysym_string_shape *shape);

/*
 * Decodes the first size bytes of the characters (at most data_size are used; the rest of a unit at the end is
 * dropped) to UTF-8 in a new string (caller frees). What UTF-8 cannot say comes out as an escape: surrogates,
 * lone by definition in PEP 393, as "\\ud800"; code points above U+10FFFF as "\\U00110000"; a NUL character
 * as "\\x00"; in 2.7's str, bytes that are no UTF-8 as "\\xff". Other control characters pass through: output
 * formats escape what they must. Returns NULL only when memory is exhausted.
 */
char *pysym_string_decode(const struct pysym_string_shape *shape, const uint8_t *data, size_t size);

#endif
