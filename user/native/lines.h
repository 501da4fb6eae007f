// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of compiled code, and what is inlined there, by the file's information for debuggers (DWARF), which libdw
 * reads. To be used in a helper process (helper.h): the file is not trusted, and libdw ends the process when it finds
 * no memory.
 */
#ifndef NATIVE_LINES_H
#define NATIVE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"
#include "native/ask.h"

/* Most functions of one place: that of the code, and those that are inlined there. What is inlined deeper is left out.
 */
#define NATIVE_INLINED_MAX 32
/* Most bytes of the sections for debuggers of all files that are open, unpacked: a helper has 128 MiB. */
#define NATIVE_LINES_BYTES_MAX ((size_t)80 << 20)

struct native_lines;

/*
 * Opens the information of a file, which may be closed then. shared: the file with what it has in common with others
 * (dwz -m), which may be closed then, too, or NULL. room: most bytes of both, unpacked. Returns 0 and *out; -ENOENT
 * without any; -ENOLINK with some of it in another file: one that is shared and was not given, or those of
 * -gsplit-dwarf, which are not read; -EFBIG; or another negative errno.
 */
int native_lines_open(const struct elf_file *elf, const struct elf_file *shared, size_t room,
		      struct native_lines **out);
/* Accepts NULL. */
void native_lines_close(struct native_lines *l);
/* Returns the bytes of the sections. */
size_t native_lines_bytes(const struct native_lines *l);

/*
 * Finds the functions at an address, as linked, the outermost first, which is not inlined. out: NATIVE_INLINED_MAX.
 * Sets all but `place`. Returns their number; 0: the address has no line; or -ENOMEM.
 */
int native_lines_find(struct native_lines *l, uint64_t address, struct native_line *out);

#endif
