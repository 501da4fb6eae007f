// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of code of which no more is known than one instruction: what was made at run time, and functions that were not
 * found, or of which flow.h has no rows. What follows the instruction tells its caller: a function returns with the
 * stack pointer at its return address, and with the caller's frame pointer in its register.
 */
#ifndef NATIVE_AHEAD_H
#define NATIVE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies at most size bytes of code at an address. Returns the bytes that are there, 0 without any. */
typedef size_t ahead_read(void *arg, uint64_t address, uint8_t *out, size_t size);

struct ahead_code {
	ahead_read *read;
	void *arg;
};

/* From start up to end the rule, a pybpf_native_row's, holds. */
struct ahead_row {
	uint64_t start, end;
	uint32_t rule;
	uint32_t pad;
};

struct ahead_rows {
	struct ahead_row *rows; /* of one instruction after the other: those of several may overlap */
	size_t count, room;
};

/*
 * Adds the rows that an instruction leads to. is_exact: the address is that of the instruction; otherwise that of the
 * last byte of a call, whose next instruction it is. Without an answer, nothing is added. Returns 0 or -ENOMEM. For
 * x86-64.
 *
 * The answer is that of the nearest return, in calls that are passed on the way: one of these may never return, and
 * then what follows is any code. So the rules have PYBPF_RULE_CHECKED.
 */
int ahead_add_rows(const struct ahead_code *code, uint64_t address, bool is_exact, struct ahead_rows *out);

#endif
