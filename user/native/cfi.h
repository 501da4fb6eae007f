// SPDX-License-Identifier: Apache-2.0
/* Runs the programs of call frame information (DWARF 5, 6.4.2), and makes rules of what they say. */
#ifndef NATIVE_CFI_H
#define NATIVE_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "native/dwarf_cursor.h"

/* What functions have in common: a CIE. */
struct cfi_common {
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t return_column;
	uint8_t pointer_encoding;    /* of addresses */
	bool has_augmentation;       /* what it begins with is told before a function's program */
	bool is_signal;              /* its functions are those to which signal handlers return */
	struct dwarf_cursor program; /* of its own, that comes first */
};

/* Called for each row: from pc on the rule, a pybpf_native_row's, holds. Returns 0 or negative errno. */
typedef int cfi_take_row(void *arg, uint64_t pc, uint32_t rule);

/*
 * Hands out the rows of the function at [start, end), whose program is given; address: where that program lies. Returns
 * what take returns, or -EBADMSG for bytes that are not a program.
 */
int cfi_make_rows(const struct cfi_common *common, struct dwarf_cursor program, uint64_t address, uint64_t start,
		  uint64_t end, cfi_take_row *take, void *arg);

/*
 * Returns the rule of a CFA that is offset bytes above the stack pointer, or the frame pointer, in a function that has
 * saved the caller's frame pointer this many bytes below the CFA; 0: it is in its register.
 */
uint32_t cfi_rule(bool by_bp, int64_t offset, int64_t saved_below);

#endif
