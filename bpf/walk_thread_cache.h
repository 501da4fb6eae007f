/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The thread states that a walk remembers for the next walk of the same thread. */
#ifndef PYBPF_WALK_THREAD_CACHE_H
#define PYBPF_WALK_THREAD_CACHE_H

#include "pybpf.h"

/* Thread states that are kept for a thread; a thread with more of them shows the frames of these. */
#define WALK_STATES 4
_Static_assert((WALK_STATES & (WALK_STATES - 1)) == 0, "places are masked");

/* The result of one walk's search for the thread's states, for its next walk. */
struct walk_states {
	__u64 tstate[WALK_STATES]; /* the thread state whose frames come first, and the states of its callers */
	__u64 id;                  /* id of the first state: see walk_tstate_id */
	__u64 outermost_entry; /* the first state's highest entry frame (3.12+) or cframe (3.10, 3.11) there, or 0 */
	__u32 count;           /* may be more than WALK_STATES */
	__u32 pad;
};

#endif
