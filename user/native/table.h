// SPDX-License-Identifier: Apache-2.0
/*
 * A file's table: rows by which the kernel side finds the callers of its functions. To be made in a helper process
 * (helper.h): the file is not trusted.
 */
#ifndef NATIVE_TABLE_H
#define NATIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "pybpf_native.h"

struct native_table {
	struct pybpf_native_row *rows; /* in order of pc */
	size_t count, room;
	uint64_t base;  /* rows' pc 0, an address as linked: where the lowest executable segment begins */
	bool has_loops; /* the file evaluates Python's frames */
	bool has_flow;  /* functions without information have rows, too */
};

/* Most bytes of .eh_frame; that of LLVM, the largest that was met, has 13 MB. */
#define NATIVE_EH_FRAME_MAX (128u << 20)

/*
 * Makes the table of a file. flow: of functions without call frame information, too, by their instructions (flow.h),
 * which takes ten times as long; of a file that has none at all in any case. Returns 0; -ENOENT when it has no call
 * frame information; -EBADMSG, -EFBIG, -ENOMEM or another negative errno.
 */
int native_table_make(struct elf_file *elf, bool flow, struct native_table *out);
void native_table_free(struct native_table *t);

#endif
