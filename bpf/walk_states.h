/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is remembered of a thread from one walk to the next. */
#ifndef PYBPF_WALK_STATES_H
#define PYBPF_WALK_STATES_H

#include "pybpf.h"

/* A thread's states that are known; a thread with more of them shows the frames of these. */
#define WALK_STATES 4
_Static_assert((WALK_STATES & (WALK_STATES - 1)) == 0, "places are masked");

/* What a walk found out about the thread: helps the next one. */
struct walk_states {
	__u64 tstate[WALK_STATES]; /* the one whose frames come first, and those of its callers */
	__u64 id;                  /* of the first: see walk_tstate_id */
	__u64 outermost_entry;     /* highest of the first one's entry frames on the C stack (3.12+), or 0 */
	__u32 count;               /* may be more than WALK_STATES */
	__u32 pad;
};

#endif
