// SPDX-License-Identifier: Apache-2.0
/* What a file's symbols say: which functions evaluate Python's frames, and whose an address is. */
#ifndef NATIVE_FUNCTIONS_H
#define NATIVE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

struct native_range {
	uint64_t start, end; /* addresses as linked */
};

struct native_ranges {
	struct native_range *ranges; /* freed by whoever had them found */
	size_t count, room;
};

/* Finds the functions that evaluate Python's frames, with the parts that compilers split off. Returns 0 or -ENOMEM. */
int native_find_loops(struct elf_file *elf, struct native_ranges *out);
bool native_ranges_have(const struct native_ranges *ranges, uint64_t address);

/* Bytes of a name with its NUL: those of C++ templates may be longer, and are cut. */
#define NATIVE_NAME_MAX 256

/* An address whose function is looked for. */
struct native_named {
	uint64_t address; /* as linked */
	uint64_t size;    /* of the function that was found; 0: none */
	char name[NATIVE_NAME_MAX];
};

/* Finds the functions that have the addresses, which are in order. Returns 0 or negative errno. */
int native_find_names(struct elf_file *elf, struct native_named *named, size_t count);

#endif
