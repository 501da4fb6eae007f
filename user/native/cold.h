// SPDX-License-Identifier: Apache-2.0
/* Parts of a function that the compiler put elsewhere, in files whose symbols do not name them. */
#ifndef NATIVE_COLD_H
#define NATIVE_COLD_H

#include <stddef.h>

#include "base/elf_file.h"
#include "native/eh_frame.h"
#include "native/functions.h"

/*
 * Adds to the functions' ranges the part into which they jump. functions: all of the file, in order of their addresses.
 * Returns 0 or -ENOMEM.
 */
int native_add_cold_part(struct elf_file *elf, const struct eh_frame_function *functions, size_t count,
			 struct native_ranges *ranges);

#endif
