// SPDX-License-Identifier: Apache-2.0
/*
 * Symbols of stripped files that a helper process has found, kept from one question to the next: new instructions of a
 * file are met all the time, and unpacking its symbols takes some 15 ms a megabyte.
 */
#ifndef NATIVE_DEBUG_CACHE_H
#define NATIVE_DEBUG_CACHE_H

#include <sys/types.h>

#include "base/elf_file.h"
#include "native/ask.h"

/*
 * Finds the symbols of the file with this identity, as native_debug_open() does. Returns them, until
 * native_debug_trim() is called, or NULL when there are none.
 */
struct elf_file *native_debug_find(const struct native_identity *of, struct elf_file *elf, pid_t pid, const char *path);
/* Frees what was used longest ago, until the rest leaves other questions their memory. */
void native_debug_trim(void);

#endif
