/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The thread states of one thread. Most threads have one. A thread that runs a subinterpreter, or that swapped thread
 * states, has more: the one that it attached last, and those of the callers, which wait for it on the C stack.
 */
#ifndef PYBPF_WALK_THREAD_H
#define PYBPF_WALK_THREAD_H

#include "walk_switch.h"

/* Whose a thread state is. */
enum walk_owner {
	WALK_NOT_OURS,
	WALK_OURS,      /* a state of this thread, which has attached another one since */
	WALK_OURS_LAST, /* the state that this thread attached last, or the build does not say */
};

/*
 * Returns whether a thread state's thread has this id. In a range the greatest id is this thread's, as another thread's
 * struct that is in the range, too, lies below its own; it is the thread's from then on.
 */
static __always_inline int walk_is_this_thread(struct walk *w, __u64 id)
{
	if (!WALK_THREAD_RANGE)
		return id == w->thread_id;
	if (!id || id < w->thread_id || id > w->thread_last)
		return 0;
	if (id != w->thread_id) {
		w->thread_id = id;
		w->current = 0;
		w->states.count = 0;
		w->last = 0;
	}
	return 1;
}

/* Reads a thread state into the buffer. */
static __always_inline enum walk_owner walk_read_tstate(struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	__u32 status;

	if (!tstate)
		return WALK_NOT_OURS;
	if (walk_window(w, tstate, l->tstate_window, PYBPF_TSTATE_WINDOW)) {
		w->unreadable = 1;
		return WALK_NOT_OURS;
	}
	if (!walk_is_this_thread(w, walk_u64(w, l->tstate_thread_id))) {
		if (!walk_u64(w, l->tstate_thread_id))
			w->unbound = 1;
		return WALK_NOT_OURS;
	}
	if (!l->tstate_status)
		return WALK_OURS_LAST;
	status = walk_u32(w, l->tstate_status);
	/* The thread is about to say that the state is its own: it has set its id (bind_tstate(), 3.12 to 3.15). */
	if (!(status & (PYBPF_TSTATE_BOUND | PYBPF_TSTATE_UNBOUND)))
		w->unbound = 1;
	if ((status & (PYBPF_TSTATE_BOUND | PYBPF_TSTATE_UNBOUND)) != PYBPF_TSTATE_BOUND)
		return WALK_NOT_OURS;
	return status & PYBPF_TSTATE_GILSTATE ? WALK_OURS_LAST : WALK_OURS;
}

/* 3.10 to 3.12 have a cframe on the C stack for each run of the evaluation loop. */
static __always_inline int walk_has_cframe_chain(const struct pybpf_layout *l)
{
	return l->tstate_cframe != PYBPF_NO_OFFSET;
}

/* 3.12+ has an entry frame on the C stack for each evaluation loop. */
static __always_inline int walk_has_shims(const struct pybpf_layout *l)
{
	return l->frame_owner != PYBPF_NO_OFFSET;
}

/*
 * Returns whether the address is on this thread's C stack, as far as is known: a thread's own struct lies above its
 * stack, except for the first thread, whose stack is above all others.
 */
static __always_inline int walk_on_stack(const struct walk *w, __u64 addr)
{
	if (!w->stack_pointer)
		return 1;
	return addr >= w->stack_pointer && (w->thread_id < w->stack_pointer || addr < w->thread_id);
}

/*
 * Returns where the cframe of the innermost evaluation loop of the thread state in the buffer is, on whichever thread;
 * 1 in versions without cframes; 0 for a state without frames.
 */
static __always_inline __u64 walk_innermost_anywhere(const struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	__u64 frame = walk_u64(w, l->tstate_frame), cframe;

	if (!walk_has_cframe_chain(l)) /* 3.15's last frame, base_frame, is in the thread state */
		return frame && frame - tstate >= WALK_TSTATE_SIZE;
	cframe = walk_u64(w, l->tstate_cframe);
	return frame && cframe - tstate >= WALK_TSTATE_SIZE ? cframe : 0;
}

/*
 * The same, and 0 for a state whose frames are on another thread: to 3.12.1 a subinterpreter may run on another one
 * than its thread state names (_run_script_in_interpreter(); gh-109860).
 */
static __always_inline __u64 walk_innermost(const struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	__u64 innermost = walk_innermost_anywhere(w, l, tstate);

	return walk_has_cframe_chain(l) && !walk_on_stack(w, innermost) ? 0 : innermost;
}

/* Returns the id of the thread state in the buffer (3.12+), which comes right before the data stack's chunk. */
static __always_inline __u64 walk_tstate_id(const struct walk *w, const struct pybpf_layout *l)
{
	return l->tstate_status && l->tstate_datastack_top ? walk_u64(w, l->tstate_datastack_top - 16) : 0;
}

static __always_inline void walk_put_state(struct walk *w, __u32 i, __u64 tstate, __u64 innermost)
{
	if (i >= WALK_STATES)
		return;
	w->states.tstate[i] = tstate;
	w->innermost[i] = innermost;
}

/* Forgets all found thread states except the one that is known to be current. */
static __always_inline void walk_clear_states(struct walk *w)
{
	w->states.count = 0;
	w->last = 0;
	if (!w->current)
		return;
	walk_put_state(w, 0, w->current, 0);
	w->states.count = 1;
	w->last = 1;
}

/* Keeps this thread's state that the search has come to, which is in the buffer. */
static __always_inline void walk_keep_state(struct walk *w, const struct pybpf_layout *l, enum walk_owner owner)
{
	__u64 innermost = walk_innermost(w, l, w->tstate);
	__u32 count = w->states.count;

	if (w->tstate == w->current)
		return;
	/* It was another thread that attached this one last. */
	if (!innermost && walk_innermost_anywhere(w, l, w->tstate))
		owner = WALK_OURS;
	if (count == 1 && !w->last && !w->innermost[0])
		count = 0; /* a state without frames is useless beside others */
	if (owner == WALK_OURS_LAST && l->tstate_status) {
		/* A thread attaches one state last: an older one is left from a thread that has ended. */
		if (w->last)
			return;
		walk_put_state(w, count, w->states.tstate[0], w->innermost[0]);
		walk_put_state(w, 0, w->tstate, innermost);
		w->last = 1;
	} else if (innermost || !count) {
		walk_put_state(w, count, w->tstate, innermost);
	} else {
		return;
	}
	w->states.count = count + 1;
}

/* Moves the thread state that is innermost on the C stack, of those from this index on, to this index. */
WALK_ONCE int walk_sort_states(struct walk *w, __u32 place)
{
	__u32 best = place & (WALK_STATES - 1);
	__u64 tstate, innermost;

	if (!w)
		return 0;
	place = best;
	for (__u32 i = 1; i < WALK_STATES; i++) {
		if (i > place && i < w->states.count && w->innermost[i] < w->innermost[best & (WALK_STATES - 1)])
			best = i;
	}
	best &= WALK_STATES - 1;
	tstate = w->states.tstate[best];
	innermost = w->innermost[best];
	w->states.tstate[best] = w->states.tstate[place];
	w->innermost[best] = w->innermost[place];
	w->states.tstate[place] = tstate;
	w->innermost[place] = innermost;
	return 0;
}

#endif
