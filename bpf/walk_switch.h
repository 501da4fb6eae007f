/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where a chain of frames ends, whether it is the stack of now, and where else the stack may be when it is not: a
 * sample can come while the interpreter goes from one frame to another.
 */
#ifndef PYBPF_WALK_SWITCH_H
#define PYBPF_WALK_SWITCH_H

#include "walk_state.h"

/* Builds whose chains come to an entry frame: every run of the evaluation loop has one (3.11+). */
static __always_inline int walk_has_entries(const struct pybpf_layout *l)
{
	return l->frame_entry != PYBPF_NO_OFFSET || l->frame_owner != PYBPF_NO_OFFSET;
}

static __always_inline int walk_has_cframe(const struct pybpf_layout *l)
{
	return l->cframe_frame != PYBPF_NO_OFFSET;
}

static __always_inline int walk_in_tstate(const struct walk *w, __u64 addr)
{
	return addr - w->tstate < WALK_TSTATE_SIZE;
}

/* On the C stack beside the cframe: inside the evaluation loop's own frame there. */
static __always_inline int walk_beside_cframe(const struct walk *w, __u64 addr)
{
	return addr - w->cframe + WALK_C_FRAME < 2 * WALK_C_FRAME;
}

static __always_inline int walk_is_pointer(__u64 value)
{
	return !(value & 7) && value > WALK_PAGE_MASK;
}

/*
 * 3.11 and 3.12 find the frame through a _PyCFrame on the C stack, one for each run of the evaluation loop. Such a run
 * first links its cframe to the thread state and only later stores a frame there (_PyEval_EvalFrameDefault): a sample
 * in between meets whatever lay on the C stack, even a frame of an earlier call. So the chain has to prove itself: it
 * must come to the run's entry frame, and from there to the frame of the outer run's cframe. If it does not, the new
 * run has no frame yet, and the outer one's is the thread's.
 */
static __always_inline void walk_enter_cframe(struct walk *w, const struct pybpf_layout *l, __u64 cframe)
{
	__u64 pair[2] = {}; /* current_frame, previous */

	if (cframe && walk_read(w, pair, sizeof(pair), cframe + l->cframe_frame))
		w->stack.flags |= PYBPF_STACK_FAULT;
	w->frame = pair[0];
	w->outer_frame = 0;
	w->outer_cframe = pair[1];
	/* Only the one inside the thread state has none before it, and never a frame that needs a proof. */
	w->unproved = cframe && !walk_in_tstate(w, cframe);
	if (!w->unproved)
		return;
	/* The outer run's lies above on the C stack, or it has not been stored yet. */
	if (pair[1] & 7 || (pair[1] <= cframe && !walk_in_tstate(w, pair[1])) ||
	    walk_read(w, &w->outer_frame, sizeof(w->outer_frame), pair[1] + l->cframe_frame))
		w->outer_cframe = 0;
}

static __always_inline void walk_clear_stack(struct walk *w)
{
	w->checkpoint = 0;
	w->hash = 0;
	w->next_checkpoint = 1;
	w->steps = 0;
	w->chunk_base = 0;
	w->chunk_size = 0;
	w->at_entry = 0;
	w->entry = 0;
	w->in_order = 1;
	w->outermost_entry = 0;
	w->stack.depth = 0;
	w->stack.flags = 0;
}

/* There is no stack that can be told. */
static __always_inline int walk_no_stack(struct walk *w)
{
	walk_clear_stack(w);
	w->stack.flags = PYBPF_STACK_FAULT;
	return 1;
}

/*
 * One step of the search for the outer run's cframe up the C stack. What lies there may be leavings that prove
 * themselves, so its frame must be known from elsewhere, too: gcc's 3.11 has it in a register while it waits to be
 * stored, 3.12 has stored it in the new run's entry frame. Returns 1 when there is no more to search.
 */
static __always_inline int walk_search(struct walk *w, const struct pybpf_layout *l)
{
	__u64 entry = 0, cframe, pair[2]; /* current_frame, previous */

	if (w->next_candidate < w->nr_candidates) {
		__u64 entered = w->candidates[w->next_candidate++ & (WALK_CANDIDATES - 1)];

		if (l->frame_owner != PYBPF_NO_OFFSET && walk_is_pointer(entered) &&
		    !walk_read(w, &entry, sizeof(entry), entered + l->frame_previous) && walk_beside_cframe(w, entry))
			walk_read(w, &w->entered_from, sizeof(w->entered_from), entry + l->frame_previous);
		return 0;
	}
	w->searched += sizeof(__u64);
	if (w->searched > WALK_SEARCH_BYTES)
		return walk_no_stack(w);
	cframe = w->cframe + w->searched;
	if (walk_read(w, pair, sizeof(pair), cframe + l->cframe_frame))
		return walk_no_stack(w);
	if (!walk_is_pointer(pair[0]) || (pair[1] - cframe > WALK_C_STACK && !walk_in_tstate(w, pair[1])))
		return 0;
	walk_clear_stack(w);
	walk_enter_cframe(w, l, cframe);
	w->found_frame = w->frame;
	if (w->outer_cframe)
		w->phase = WALK_FRAME;
	return 0;
}

/*
 * One step of the comparison of the frame that was found with the registers: it is the outer run's if one of them has
 * it. Returns 1 when it is.
 */
static __always_inline int walk_compare(struct walk *w)
{
	if (w->next_candidate < w->nr_candidates)
		return w->candidates[w->next_candidate++ & (WALK_CANDIDATES - 1)] == w->found_frame;
	w->passed = 1;
	w->phase = WALK_SEARCH;
	return 0;
}

/* Why a chain goes no further. */
enum walk_stop {
	WALK_GOES_ON = 0,
	WALK_ROOT,  /* there is no previous frame */
	WALK_TORN,  /* it can't be read, or runs in a circle */
	WALK_WRONG, /* it is no chain of now */
};

/* The chain that ends here is the thread's stack. */
static __always_inline int walk_proved(struct walk *w, const struct pybpf_layout *l, enum walk_stop stop)
{
	if (walk_has_cframe(l) ? w->unproved : stop != WALK_ROOT || (walk_has_entries(l) && !w->at_entry))
		return 0;
	if (w->attempt == WALK_FIRST)
		return 1;
	return w->stack.depth && (w->attempt != WALK_REGISTER_FRAME || !w->stack.flags);
}

/* Sets out from the next place where the frame may be. Returns 1 when there is none left. */
static __always_inline int walk_try_next(struct walk *w, const struct pybpf_layout *l)
{
	__u64 candidate;

	walk_clear_stack(w);
	if (w->attempt == WALK_FIRST) /* A frame is proved by the outer run's. */
		w->attempt = walk_has_cframe(l) && !w->outer_cframe ? WALK_REGISTER_CFRAME : WALK_REGISTER_FRAME;
	if (w->attempt == WALK_REGISTER_FRAME && w->next_candidate == w->nr_candidates) {
		if (!walk_has_cframe(l))
			return walk_no_stack(w);
		w->attempt = WALK_REGISTER_CFRAME;
		w->next_candidate = 0;
	}
	if (w->attempt <= WALK_REGISTER_CFRAME && w->next_candidate < w->nr_candidates) {
		candidate = w->candidates[w->next_candidate++ & (WALK_CANDIDATES - 1)];
		if (w->attempt == WALK_REGISTER_CFRAME) {
			walk_enter_cframe(w, l, candidate > w->cframe && !walk_in_tstate(w, candidate) ? candidate : 0);
		} else {
			/* No pointer: the next step comes back for another. */
			w->frame = walk_is_pointer(candidate) ? candidate : 0;
			w->unproved = 1;
		}
		return 0;
	}
	if (w->attempt == WALK_REGISTER_CFRAME && w->named_cframe) {
		w->attempt = WALK_NAMED_CFRAME;
		walk_enter_cframe(w, l, w->named_cframe);
		return 0;
	}
	if (!w->nr_candidates)
		return walk_no_stack(w);
	if (w->attempt != WALK_SEARCHED) {
		w->attempt = WALK_SEARCHED;
		w->next_candidate = 0;
		w->entered_from = 0;
		w->searched = 0;
		w->passed = 0;
	}
	w->phase = WALK_SEARCH;
	return 0;
}

/*
 * The chain ends here. Returns 1 when the walk does, too.
 *
 * A chain of 3.11+ ends at an entry frame. One that does not was met while the evaluation loop switched frames: the
 * compiler may have let it unlink a generator's frame before it stored the caller's (gcc does so in 3.12's
 * YIELD_VALUE), and the caller is then only in a register. So each register is tried: the frame that the loop works on
 * is the one whose chain comes to an entry frame and that the data stack has not popped. In 3.11 and 3.12 the cframe
 * may be the one that is not ready, and the frame then is that of the outer run, whose cframe is sought in the
 * registers, in the new cframe, and up the C stack. A stack that is found in none of these ways is not told.
 */
static __always_inline int walk_end(struct walk *w, const struct pybpf_layout *l, enum walk_stop stop)
{
	if (walk_proved(w, l, stop)) {
		/* What the entry frame says may be left from an earlier run: it is believed of the nearest cframe. */
		if (w->attempt != WALK_SEARCHED || (!w->passed && w->found_frame == w->entered_from))
			return 1;
		w->phase = WALK_COMPARE;
		w->next_candidate = 0;
		return 0;
	}
	if (w->attempt == WALK_FIRST) {
		/* What can't be read to its end is true as far as it goes; but a cframe's needs its proof. */
		if (stop == WALK_TORN && (!walk_has_cframe(l) || (w->stack.flags & PYBPF_STACK_NO_ROOT)))
			return 1;
		if (stop == WALK_ROOT && !w->steps && !walk_has_cframe(l))
			return 1; /* no frame at all */
	}
	return walk_try_next(w, l);
}

/* The frame at `at` is none of Python's. */
static __always_inline int walk_is_shim(const struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	return l->frame_owner != PYBPF_NO_OFFSET && walk_frame_u8(w, at, l->frame_owner) >= l->owner_not_python;
}

/* The frame at `at` is the first of its run of the evaluation loop. */
static __always_inline int walk_is_entry(const struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	if (l->frame_entry != PYBPF_NO_OFFSET)
		return walk_frame_u8(w, at, l->frame_entry);
	return walk_is_shim(w, l, at);
}

enum walk_verdict {
	WALK_PYTHON,  /* a frame to keep */
	WALK_NOT_ONE, /* none of Python's, or none any more: the chain goes on */
	WALK_NOT_NOW, /* no part of the thread's stack */
};

/*
 * What to do with the frame at `at`, whose link has been followed; an entry frame may prove the chain. A frame beyond
 * the data stack's top has been popped: no chain leads there, but that 3.11 unlinks a frame just after it pops it. The
 * loop works on no entry frame; and of 3.12's frames none but those lie on the C stack: beside a cframe there can only
 * be leavings of one.
 */
static __always_inline enum walk_verdict walk_judge(struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 at)
{
	int shim = walk_is_shim(w, l, at), popped = 0;

	if (!w->unproved)
		return shim ? WALK_NOT_ONE : WALK_PYTHON;
	if (frame >= w->datastack_top && frame < w->datastack_limit) {
		popped = l->frame_entry != PYBPF_NO_OFFSET && !w->at_entry && w->attempt == WALK_FIRST &&
			 w->steps == 1 && frame == w->datastack_top;
		if (!popped)
			return WALK_NOT_NOW;
	}
	if (shim && w->attempt == WALK_REGISTER_FRAME && !w->stack.depth)
		return WALK_NOT_NOW;
	if (walk_has_cframe(l)) {
		if (w->at_entry ? w->frame != w->outer_frame : walk_beside_cframe(w, frame))
			return WALK_NOT_NOW;
		w->unproved = !w->at_entry;
	}
	return shim || popped ? WALK_NOT_ONE : WALK_PYTHON;
}

#endif
