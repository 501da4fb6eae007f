// SPDX-License-Identifier: Apache-2.0
/* Which lock a thread waits for, and which it has: what makes a deadlock visible. */
#ifndef DUMP_LOCKS_H
#define DUMP_LOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/objects/py_value.h"
#include "symbols/walk/walk_user.h"

/* Most locks of a thread that are kept. */
#define DUMP_LOCKS_MAX 16

/* A place is where threads that want a lock sleep (struct py_lock). */
struct dump_locks {
	uint64_t wanted;   /* place of the lock that the thread waits for; 0: none, or not known */
	uint64_t owner;    /* pthread_self() of the thread that has it, if the lock says so; else 0 */
	uint64_t joins;    /* pthread_self() of the thread for whose end it waits; 0: none, or not known */
	pid_t mutex_owner; /* TID, inside, of the thread that has the pthread_mutex_t it waits for; else 0 */
	uint32_t nr_held;  /* locks that it has by a with statement in one of its functions */
	uint64_t held[DUMP_LOCKS_MAX];
	bool unsure[DUMP_LOCKS_MAX];      /* of these: it may have given it back inside the with statement */
	uint32_t held_in[DUMP_LOCKS_MAX]; /* the number of that function's frame, of struct walk_stack */
};

/*
 * Reads the locks of a thread with that stack. futex: on which it sleeps, or 0. What it holds is true if the thread has
 * had this stack until now; else dump_locks_keep_same() is to be called with the stack that is read after this.
 */
void dump_locks_read(const struct py_values_of *of, const struct walk_stack *stack, uint64_t futex,
		     struct dump_locks *out);
/* Takes back what the thread has in functions that are not, or not at the same instruction, in `again`. */
void dump_locks_keep_same(struct dump_locks *locks, const struct walk_stack *stack, const struct walk_stack *again);

#endif
