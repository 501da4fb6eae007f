// SPDX-License-Identifier: Apache-2.0
/* The words of a code object that its source has to contain: names, and strings that are one word. */
#ifndef SYMBOLS_WORDS_H
#define SYMBOLS_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/* The first character of a word. */
#define PYSYM_WORD_NAME   'n'
#define PYSYM_WORD_STRING 's'

/*
 * Reads co_names, the names of variables, and the strings of co_consts, as far as they can be read. Returns the words,
 * each with its kind before it and a NUL behind it, which the caller frees; *size: bytes of them all. NULL when the
 * signature of the code object is not sig, or memory is exhausted.
 */
char *pysym_words_read(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t code, uint32_t sig,
		       size_t *size);

#endif
