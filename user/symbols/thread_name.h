// SPDX-License-Identifier: Apache-2.0
/* Reads the names that Python's module threading gives to threads, from a process that runs meanwhile. */
#ifndef SYMBOLS_THREAD_NAME_H
#define SYMBOLS_THREAD_NAME_H

#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk_user.h"

/* Most bytes of a name that are kept. */
#define PYSYM_THREAD_NAME_MAX 127

/*
 * Returns the address of threading._active of an interpreter, a dict of the threads by their pthread_self(), or 0 if it
 * cannot be read or the module is not imported.
 */
uint64_t pysym_find_threads(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp);

/*
 * Returns the name of the thread whose pthread_self() is thread_id, as UTF-8 in a new string (caller frees); NULL if
 * the dict at `threads` does not have the thread, or it cannot be read. The name is of a thread that was in the dict
 * during the call: whether it was this one, the caller knows if it lives afterwards.
 */
char *pysym_read_thread_name(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t threads,
			     uint64_t thread_id);

#endif
