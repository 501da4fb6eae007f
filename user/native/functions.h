// SPDX-License-Identifier: Apache-2.0
/* What a file's symbols say: which functions evaluate Python's frames, and whose an address is. */
#ifndef NATIVE_FUNCTIONS_H
#define NATIVE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "native/demangle.h"

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

/* An address whose function is looked for. */
struct native_named {
	uint64_t address;               /* as linked */
	uint64_t size;                  /* of the function that was found; 0: none yet */
	uint64_t start;                 /* its first address */
	char symbol[NATIVE_SYMBOL_MAX]; /* its name as the linker knows it, which may be cut off there */
};

/*
 * Finds the functions that have the addresses, which are in order, among the symbols of a file. To be called for each
 * file that has symbols of the code. Returns 0 or negative errno.
 */
int native_find_names(struct elf_file *elf, struct native_named *named, size_t count);
/*
 * Names those of the addresses, which are in order, that are in a range of code made at run time, whatever names they
 * have. Control characters are shown as '?'. A range where programs have no code, or without a name, names none.
 */
void native_give_name(struct native_named *named, size_t count, uint64_t start, uint64_t size, const char *name);
/* Returns how many of these addresses, which are in order, are below this one. */
size_t native_count_below(const struct native_named *named, size_t count, uint64_t address);

#endif
