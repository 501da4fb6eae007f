// SPDX-License-Identifier: Apache-2.0
/* Reads what Python's module threading knows of threads, from a process that runs meanwhile. */
#ifndef SYMBOLS_THREAD_NAME_H
#define SYMBOLS_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/* Most bytes of a name that are kept. */
#define PYSYM_THREAD_NAME_MAX 127

/*
 * Returns the address of threading._active of an interpreter, a dict of the threads by their pthread_self(), or 0 if it
 * cannot be read or the module is not imported.
 */
uint64_t pysym_find_threads(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp);

/* What a threading.Thread says of its thread. */
struct pysym_thread {
	char *name; /* UTF-8, the caller's to free; NULL: not known */
	bool is_daemon, daemon_known;
};

/*
 * Reads what the dict at `threads` has of the thread whose pthread_self() is thread_id. Returns false if it does not
 * have the thread, or that cannot be read. It is of a thread that was in the dict during the call: whether it was this
 * one, the caller knows if it lives afterwards.
 */
bool pysym_read_thread(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t threads,
		       uint64_t thread_id, struct pysym_thread *out);

/* Returns what a threading.Thread has as its thread's pthread_self(); 0: nothing, or it cannot be read. */
uint64_t pysym_thread_ident(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t thread);

#endif
