// SPDX-License-Identifier: Apache-2.0
/* The threads that a Python's interpreters know, from its memory. */
#ifndef DUMP_THREADS_H
#define DUMP_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"
#include "pybpf.h"
#include "symbols/walk/walk_user.h"

/* Bytes of the name of an exception's class that are kept, with its NUL. */
#define DUMP_EXCEPTION_NAME 64

/* What Python says of a thread besides its stack; read with it, so that it is of the same moment. */
struct dump_facts {
	uint64_t interp;                     /* the interpreter whose function is the leaf; 0: not known */
	char exception[DUMP_EXCEPTION_NAME]; /* class of the one that it raises or handles; "": none, or not known */
	uint32_t collection;                 /* enum pybpf_collection */
	bool is_interp_unsure; /* nothing proves which interpreter a thread is in, if there are several (to 3.9) */
	bool is_daemon, daemon_known;
	bool has_exception, exception_known; /* also if its class is not known */
	/*
	 * It ran while its stack was read, which may be of several moments. Exception and collection are unknown then.
	 */
	bool is_moving;
};

/* A thread as an interpreter knows it. */
struct dump_known {
	uint64_t thread_id; /* pthread_self() */
	uint64_t interp;    /* the oldest interpreter that has it, which is the main one if that does */
	uint32_t runtime;   /* index of the Python in its process */
	pid_t inside;       /* TID in the process's PID namespace; 0: not found */
	struct walk_known_states states;
};

struct dump_known_list {
	struct intern threads;                     /* struct dump_known, by its thread_id */
	struct intern inside;                      /* of them, by TID */
	unsigned nr_interps;                       /* of all runtimes */
	uint64_t main_interps[PYBPF_MAX_RUNTIMES]; /* the main interpreter of each runtime */
};

void dump_known_init(struct dump_known_list *list);
void dump_known_free(struct dump_known_list *list);

static inline struct dump_known *dump_known_at(const struct dump_known_list *list, uint32_t i)
{
	return intern_item(&list->threads, i);
}

/* Adds the interpreters of a runtime, and their threads, each once. Returns 0 or -ENOMEM. */
int dump_list_threads(const struct walk_memory *memory, const struct pybpf_layout *layout,
		      const struct pybpf_runtime *runtime, uint32_t index, struct dump_known_list *list);

/*
 * Finds the TIDs of the threads in the C library's struct of each. inside: the TIDs of the process's threads, as its
 * own PID namespace calls them. Returns 0 or -ENOMEM.
 */
int dump_find_tids(const struct walk_memory *memory, const pid_t *inside, size_t count, struct dump_known_list *list);

/* To be called when the TIDs are known. Returns 0 or -ENOMEM. */
int dump_index_tids(struct dump_known_list *list);
/* Returns the first thread with that TID, or NULL. */
const struct dump_known *dump_known_by_tid(const struct dump_known_list *list, pid_t inside);

#endif
