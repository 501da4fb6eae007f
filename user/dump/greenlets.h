// SPDX-License-Identifier: Apache-2.0
/* The greenlets of a process that do not run. */
#ifndef DUMP_GREENLETS_H
#define DUMP_GREENLETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helper/helper.h"
#include "pybpf.h"
#include "symbols/objects/greenlet.h"
#include "symbols/walk/walk_user.h"

/* Most greenlets of a process that are read: a second. */
#define DUMP_GREENLETS_MAX 8192

struct dump_greenlet {
	uint64_t object; /* its address, as id() has it */
	pid_t tid;       /* the thread that runs it */
	char class[GREENLET_CLASS];
	bool is_main; /* it is what the thread began with */
	uint64_t stack_id;
	uint32_t stack; /* of dump_process.stacks */
};

struct dump_greenlets {
	/* Those of a thread together, its main one first, and of the others those of a class with the same stack. */
	struct dump_greenlet *items;
	size_t count, room;
	uint64_t changed; /* how many are left out, because they changed at each attempt to read them */
	bool beyond;      /* there may be more than were searched for */
};

struct dump_greenlets_of {
	pid_t pid;
	bool stopped;
	struct pybpf_runtime runtime;
	struct pybpf_layout layout;
};

struct dump_greenlet_found {
	uint64_t impl, object, stack_start;
	uint64_t map_begin, map_end; /* the mapping that its C stack is in */
	uint32_t is_first;           /* that is the first thread's */
	uint32_t pad;
};
/*
 * Finds the greenlets of a Python; the caller frees *found. Returns 0, -ENOENT where greenlet is not loaded, or another
 * negative errno, as of helper_call().
 */
int dump_find_greenlets(const struct dump_greenlets_of *of, struct dump_greenlet_found **found, size_t *count,
			bool *beyond);
/* Most greenlets that one call of dump_read_greenlets() reads. */
#define DUMP_GREENLETS_BATCH 128
struct dump_greenlet_read {
	struct dump_greenlet greenlet; /* without thread and stack */
	struct walk_stack stack;       /* its frames are valid while it is taken; it has no addresses */
	bool changed;                  /* it was another one at each attempt: there is nothing else of it */
};
/*
 * Reads greenlets that one thread runs, up to DUMP_GREENLETS_BATCH, and calls take with each that has not begun to run,
 * or ended, since they were found, until it returns non-zero, which is returned then. Returns 0 or negative errno, as
 * of helper_call().
 */
typedef int dump_take_greenlet(void *arg, const struct dump_greenlet_read *read);
int dump_read_greenlets(const struct dump_greenlets_of *of, const struct dump_greenlet_found *found, size_t count,
			uint64_t thread_id, const struct walk_known_states *states, dump_take_greenlet *take,
			void *arg);

struct dump_known_list;
struct dump_process;
struct stacks;

/* Where greenlets are kept. */
struct dump_greenlets_to {
	struct dump_process *process; /* whose threads have been read */
	const struct dump_known_list *known;
	uint32_t runtime; /* index of the Python in its process */
	struct stacks *stacks;
	uint64_t proc_id; /* of the process in stacks */
	struct pybpf_rights rights;
	uint64_t *last_stack_id; /* that was given */
};
/* Adds the greenlets of a Python to the process, which is incomplete where they could not be read. Returns 0, -ENOMEM
 * or -EINTR. */
int dump_collect_greenlets(const struct dump_greenlets_of *of, const struct dump_greenlets_to *to);

void dump_greenlets_sort(struct dump_greenlets *greenlets);
void dump_greenlets_free(struct dump_greenlets *greenlets);

/* How helpers answer: rows of the table in cli/services.c. */
helper_service dump_serve_greenlet_search, dump_serve_greenlets;

#endif
