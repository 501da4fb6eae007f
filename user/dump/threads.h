// SPDX-License-Identifier: Apache-2.0
/* The threads that a Python's interpreters know, from its memory. */
#ifndef DUMP_THREADS_H
#define DUMP_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"
#include "symbols/walk_user.h"

/* A thread as an interpreter knows it. */
struct dump_known {
	uint64_t thread_id; /* pthread_self() */
	uint64_t interp;    /* address of the interpreter */
	uint32_t runtime;   /* index of the Python in its process */
	pid_t inside;       /* TID in the process's PID namespace; 0: not found */
};

struct dump_known_list {
	struct dump_known *items;
	size_t count, room;
};

/* Adds the threads of a runtime, each once. Returns 0 or -ENOMEM. */
int dump_list_threads(const struct walk_memory *memory, const struct pybpf_layout *layout,
		      const struct pybpf_runtime *runtime, uint32_t index, struct dump_known_list *list);

/*
 * Finds the TIDs of the threads in the C library's struct of each. inside: the TIDs of the process's threads, as its
 * own PID namespace calls them.
 */
void dump_find_tids(const struct walk_memory *memory, const pid_t *inside, size_t count, struct dump_known_list *list);

#endif
