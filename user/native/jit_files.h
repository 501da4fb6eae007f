// SPDX-License-Identifier: Apache-2.0
/* Which programs and libraries of a process may register code with debuggers (jit_images.h). */
#ifndef NATIVE_JIT_FILES_H
#define NATIVE_JIT_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most lists of a process: each library with a JIT has its own, if it is not shared. */
#define NATIVE_JIT_LISTS_MAX 16

/*
 * Writes the addresses of the first such lists in the process's memory to out: those of NATIVE_JIT_SYMBOL in its files,
 * which may be a local symbol. Returns their number. To be called in a helper, which remembers what files have it.
 */
size_t native_jit_find_lists(pid_t pid, uint64_t out[NATIVE_JIT_LISTS_MAX]);

#endif
