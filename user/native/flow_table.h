// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of jumps, as compilers make them of switches: what a jump by a register leads to is told by the instructions
 * before it.
 */
#ifndef NATIVE_FLOW_TABLE_H
#define NATIVE_FLOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "native/x86.h"

/* Most instructions before a jump that are looked at. */
#define FLOW_TABLE_PATH_MAX 128
/* Most entries of a table. */
#define FLOW_TABLE_MAX 4096

/* An instruction on a way to the jump. */
struct flow_passed {
	struct x86_instruction i;
	uint64_t next_pc; /* of the instruction behind it in memory */
	bool jumped;      /* the way goes on elsewhere */
};

struct flow_table {
	uint64_t address; /* as linked */
	size_t count;     /* of entries */
	bool is_absolute; /* entries are addresses of 8 bytes; else distances from the table, of 4, with sign */
};

/*
 * Finds the table of the jump that is the first of count instructions, in the order from the jump back. Returns false
 * if they do not tell where it is and how many entries it has.
 */
bool flow_table_find(const struct flow_passed *passed, size_t count, struct flow_table *out);

/* Reads the addresses that a table has, at most FLOW_TABLE_MAX. Returns false if the file does not hold all of it. */
bool flow_table_read(struct elf_file *elf, const struct flow_table *table, uint64_t *targets);

#endif
