// SPDX-License-Identifier: Apache-2.0
/* Reads CPython's strings from a process's memory. */
#ifndef SYMBOLS_STRING_READ_H
#define SYMBOLS_STRING_READ_H

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/*
 * Reads the header of a string object, PYSYM_STRING_HEADER bytes. A short string near the end of a mapping can have
 * fewer; only its header must be readable. Returns 0 or negative errno.
 */
int pysym_read_string_header(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr,
			     uint8_t *header);
/* Reads a string object as UTF-8 in a new string (caller frees). Returns NULL when that fails. */
char *pysym_read_string(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr);

#endif
