// SPDX-License-Identifier: Apache-2.0
/*
 * The symbols of a file that was stripped: they are in a file for debuggers, or packed in a section of its own. To be
 * used in a helper process (helper.h): neither is trusted.
 */
#ifndef NATIVE_DEBUG_FILE_H
#define NATIVE_DEBUG_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/elf_file.h"

struct native_debug {
	struct elf_file *elf; /* its addresses are the file's */
	void *bytes;          /* of one that was unpacked; else NULL */
	size_t size;          /* of the bytes */
};

/*
 * Opens the symbols of a file. path: where it is mapped; pid: a process that maps it, in whose root directory is looked
 * first, or 0. Returns 0 and *out, which native_debug_close() frees; -ENOENT when there are none; or another negative
 * errno.
 */
int native_debug_open(struct elf_file *elf, pid_t pid, const char *path, struct native_debug *out);
/*
 * Opens the file with what several files for debuggers have in common (dwz -m), which one of them names and tells by
 * its build-id (.gnu_debugaltlink): below /usr/lib/debug, where native_debug_open() looks. Returns 0 and *out, which
 * elf_file_free() frees; -ENOENT when none is named, or it is not there; or another negative errno.
 */
int native_debug_open_shared(struct elf_file *debug, pid_t pid, const char *path, struct elf_file **out);
void native_debug_close(struct native_debug *debug);

#endif
