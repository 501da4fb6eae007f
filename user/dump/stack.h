// SPDX-License-Identifier: Apache-2.0
/* The stack of a thread together with its state. */
#ifndef DUMP_STACK_H
#define DUMP_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dump/locals.h"
#include "dump/locks.h"
#include "dump/state.h"
#include "dump/threads.h"
#include "helper/helper.h"
#include "pybpf.h"
#include "symbols/objects/thread_name.h"
#include "symbols/walk/walk_user.h"

/* The thread to read. */
struct dump_stack_of {
	pid_t pid, tid;
	uint64_t thread_id; /* its pthread_self() */
	uint64_t names;     /* threading._active of its interpreter: pysym_find_threads() */
	struct dump_stop stop;
	bool all_stopped;                /* nor do the other threads of the process run */
	struct walk_known_states states; /* that the interpreters' lists had */
	struct dump_locals_wanted locals;
	struct pybpf_runtime runtime;
	struct pybpf_layout layout;
};

struct dump_stack {
	struct dump_state state;
	struct walk_stack walk;    /* its frames are the caller's to free; it has no addresses */
	struct dump_locals locals; /* of its frames; the bytes are the caller's to free */
	struct dump_locks locks;
	struct dump_facts facts;
	char name[PYSYM_THREAD_NAME_MAX + 1]; /* that Python has for the thread; "": none */
};

/*
 * Reads stack and state of a thread, in a helper process (helper.h), until they are proved to belong together: a
 * thread that sleeps and has not left a CPU meanwhile had that stack all the time; one that runs had it if two reads of
 * it agree. That of one which is stopped is read once. Returns 0, or negative errno, of which dump_judge_reading() says
 * what it means for the thread.
 */
int dump_read_stack(const struct dump_stack_of *of, struct dump_stack *out);

/* Returns whether a thread that waited at two looks cannot have run between them. */
bool dump_is_same_sleep(const struct dump_state *a, const struct dump_state *b);

/* How helpers answer: a row of the table in cli/services.c. */
helper_service dump_serve_stack;

#endif
