// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of functions that have no call frame information, such as those of musl, and of libraries' assembly: what their
 * instructions do to the stack pointer and the frame pointer is followed on all paths. Where that does not lead to one
 * answer there is no row.
 */
#ifndef NATIVE_FLOW_H
#define NATIVE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "native/eh_frame.h"

/* From start up to end the rule, a pybpf_native_row's, holds. */
struct flow_row {
	uint64_t start, end; /* addresses as linked */
	uint32_t rule;
	bool is_certain; /* its function is certainly one, by a symbol or a call */
	bool is_begin;   /* of a function */
};

struct flow_rows {
	struct flow_row *rows; /* in order, without overlaps; freed by whoever had them made */
	size_t count, room;
};

/* Most bytes of a file's code: that of Polars, the largest that was met, has 106 MB. */
#define FLOW_CODE_MAX (512u << 20)

/* Less than this lies between functions to align them, and belongs to no function. */
#define FLOW_PADDING_MAX 64

/*
 * Makes the rows of the file's code that no function of `covered`, which are in order, has. For x86-64. Returns 0 or
 * -ENOMEM.
 */
int flow_make_rows(struct elf_file *elf, const struct eh_frame_function *covered, size_t count, struct flow_rows *out);

#endif
