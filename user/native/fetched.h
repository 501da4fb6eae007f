// SPDX-License-Identifier: Apache-2.0
/*
 * A file for debuggers that was fetched by its build-id, in a file in memory. To be used in a helper process
 * (helper.h): what a server sent is not trusted.
 */
#ifndef NATIVE_FETCHED_H
#define NATIVE_FETCHED_H

#include <stddef.h>
#include <stdint.h>

#include "base/elf_file.h"

/* Says where such files come, one after the other. To be called before helper_start(), as helper_keep_open(). */
void native_fetched_use(int fd);

/*
 * Opens the file that was fetched last. Returns 0 and *out; -ENOENT when no file was fetched; -ESTALE when it has
 * another build-id; -ENOEXEC when it is no ELF file; or another negative errno.
 */
int native_fetched_open(const uint8_t *id, size_t id_size, struct elf_file **out);

#endif
