// SPDX-License-Identifier: Apache-2.0
/*
 * Parts of a thread's time. A wait that goes on when an epoch ends is in no map of the kernel that adds up waits: its
 * time so far is counted ahead, and taken off what the kernel counts of it later.
 */
#ifndef SESSION_TIME_PARTS_H
#define SESSION_TIME_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf_wait.h"

struct session_part {
	struct pybpf_wait_key key;
	struct pybpf_wait_time time;
};

struct session_parts {
	struct session_part *items;
	size_t count, room;
};

void session_parts_free(struct session_parts *parts);
/* Returns 0 or -ENOMEM. */
int session_parts_add(struct session_parts *parts, const struct pybpf_wait_key *key,
		      const struct pybpf_wait_time *time);
/* Sorts by thread. */
void session_parts_sort(struct session_parts *parts);
/* Returns how many parts from the first one on are of the same thread. */
size_t session_parts_of_one(const struct session_part *parts, size_t count);
uint64_t session_parts_sum(const struct session_part *parts, size_t count);

/* Kinds of time of a living thread that are in its entry only, in the order in which they are believed. */
enum session_present {
	SESSION_PRESENT_GIL,   /* sleeps of a wait for the GIL before the present state */
	SESSION_PRESENT_STATE, /* the state that it is in, unless it runs */
	SESSION_PRESENT_READY, /* ready to run since it was woken */
	SESSION_PRESENT_RUNS,  /* all its time on a CPU */
	SESSION_PRESENTS,
};

/*
 * Fills in the time that the thread's entry has until end_ns, in the kernel's clock; 0: there is none. min_block_ns: a
 * wait for the GIL that has ended and was shorter is not counted by its stack.
 */
void session_parts_of_thread(const struct pybpf_thread *thread, uint64_t end_ns, uint64_t min_block_ns,
			     struct session_part present[SESSION_PRESENTS]);
/*
 * The thread may have gone on since its entry was read: what then has ended is counted by the kernel's maps, too.
 * Shortens the parts until they are no longer than the thread's life leaves them, left_ns; its time on a CPU before
 * ran_ns stays.
 */
void session_parts_fit(struct session_part present[SESSION_PRESENTS], uint64_t ran_ns, uint64_t left_ns);

/*
 * Takes what was counted ahead off two lists of parts of the same thread: off the same wait, else one of the same stack
 * and state (what a wait was for may be known at its end only), else one of the same state, else any.
 */
void session_parts_take_off(struct session_part *ended, size_t nr_ended, struct session_part *present,
			    size_t nr_present, const struct session_part *ahead, size_t nr_ahead);

#endif
