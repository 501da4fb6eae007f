// SPDX-License-Identifier: Apache-2.0
/* Reads section .eh_frame: which functions there are, and the rows of each. */
#ifndef NATIVE_EH_FRAME_H
#define NATIVE_EH_FRAME_H

#include <stdint.h>

#include "native/cfi.h"

/* The bytes of the section, which begins at an address as linked. */
struct eh_frame {
	const uint8_t *bytes;
	uint64_t size, address;
	/* The CIE that was read last, of which functions by the thousand are; common_at: its offset + 1. */
	struct cfi_common common;
	uint64_t common_at;
};

/* One function's entry: an FDE. Its CIE and its program are read when its rows are made. */
struct eh_frame_function {
	uint64_t start, end; /* addresses as linked */
	uint64_t offset;     /* of the FDE in the section */
};

/*
 * Calls visit for each function, in the order of the section. Returns 0, what visit returns if that is negative, or
 * -EBADMSG when the section cannot be read to its end.
 */
int eh_frame_functions(struct eh_frame *section, int (*visit)(void *arg, const struct eh_frame_function *function),
		       void *arg);

/* Hands out the rows of a function that was visited. Returns as cfi_make_rows(). */
int eh_frame_rows(struct eh_frame *section, const struct eh_frame_function *function, cfi_take_row *take, void *arg);

#endif
