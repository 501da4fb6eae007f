// SPDX-License-Identifier: Apache-2.0
/* The files that processes map, as a helper process opens them (helper.h). */
#ifndef NATIVE_MAPPED_H
#define NATIVE_MAPPED_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/elf_file.h"
#include "native/ask.h"
#include "native/table.h"

/* The path of the kernel's own code in a process's mappings. */
#define NATIVE_VDSO "[vdso]"

bool native_is_vdso(const struct native_mapped *mapped);
/* Returns whether the mapping is of code in no file (native/made.h). */
bool native_is_made(const struct native_mapped *mapped);
/* Fills in what tells a file from what it was before: size and mtime_ns. */
void native_identify(const struct stat *st, struct native_identity *out);
/*
 * Opens the file of a mapping, if it is still the same. pid: a process that maps it, or 0: it is opened by its path.
 * Returns 0 or negative errno.
 */
int native_open_mapped(pid_t pid, const struct native_mapped *mapped, struct elf_file **out);

/* Says of a file what its table and its segments tell; the rest is 0. */
void native_describe_file(struct elf_file *elf, const struct native_table *table, struct native_file *out);
/*
 * How a mapping that begins at an offset in the file fits a segment of it: segments may share a page of the file. A
 * mapping that begins in a segment is a part of it, which mprotect() has made.
 */
enum native_fit {
	NATIVE_FIT_NONE,
	NATIVE_FIT_IN,
	NATIVE_FIT_BEGINS,
};
enum native_fit native_fit_segment(uint64_t offset, uint64_t size, uint64_t mapped);
/*
 * Fills in bias of a mapping that begins at an offset in the file. Returns whether it is of one of the file's segments.
 */
bool native_find_bias(const struct native_file *file, uint64_t offset, struct pybpf_native_mapping *m);

#endif
