/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The walk from a thread to its Python frames, written once and compiled twice: by clang for the kernel, where
 * memory is that of the interrupted thread, and by the user-space compiler, where it is another process's or
 * saved memory.
 *
 * Whoever includes this defines walk_read(w, dst, size, addr): copies size bytes of the target's memory, returns 0
 * or a negative number.
 *
 * The walk is a machine of small steps so that the kernel may run it in bpf_loop, or, where there is none, in tail
 * calls: walk_start, then walk_step until it returns 1, WALK_STEPS times at most, and walk_no_stack if it did not.
 */
#ifndef PYBPF_WALK_H
#define PYBPF_WALK_H

#include "walk_code.h"
#include "walk_state.h"
#include "walk_switch.h"

/* Reads a thread state into the buffer. Returns 0 when it is this thread's. */
static __always_inline int walk_read_tstate(struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	if (!tstate || walk_window(w, tstate, l->tstate_window, PYBPF_TSTATE_WINDOW))
		return -1;
	return walk_u64(w, l->tstate_thread_id) == w->thread_id ? 0 : 1;
}

/* The thread state in the buffer is attached to its thread, or the build does not say. */
static __always_inline int walk_tstate_active(const struct walk *w, const struct pybpf_layout *l)
{
	return !l->tstate_status || (walk_u32(w, l->tstate_status) & PYBPF_TSTATE_ACTIVE);
}

/* Goes from the thread state in the buffer to its first frame. */
static __always_inline void walk_enter_thread(struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	__u64 frame = walk_u64(w, l->tstate_frame);

	w->tstate = tstate;
	w->phase = WALK_FRAME;
	w->result = WALK_OK;
	w->run = l->tstate_cframe != PYBPF_NO_OFFSET ? walk_u64(w, l->tstate_cframe) : 0;
	w->attached = l->tstate_status && walk_tstate_active(w, l);
	if (l->tstate_datastack_top) {
		w->datastack_top = walk_u64(w, l->tstate_datastack_top);
		w->datastack_limit = walk_u64(w, l->tstate_datastack_top + 8);
	} else {
		/* Without them no candidate can be told from a frame that was popped. */
		w->nr_candidates = 0;
	}
	if (walk_has_cframe(l)) {
		walk_enter_cframe(w, l, frame);
		w->cframe = frame;
		w->named_cframe = w->outer_cframe;
	} else {
		w->frame = frame;
	}
}

/*
 * Begins a walk; nr_candidates candidates are there already. current is the thread state that holds the GIL, cached the
 * one that was this thread's at an earlier sample; either may be 0 and is checked. Without a match walk_step searches
 * interpreters and their threads. Returns 1 when cached is this thread's but not attached (it has released the GIL):
 * walk_settle is to be called next.
 */
static __always_inline int walk_start(struct walk *w, const struct pybpf_layout *l, __u64 current, __u64 cached)
{
	w->tstate = 0;
	w->fallback = 0;
	w->interp = 0;
	w->frame = 0;
	w->unproved = 0;
	w->attempt = WALK_FIRST;
	w->next_candidate = 0;
	w->outer_cframe = 0;
	w->phase = WALK_INTERP;
	w->result = WALK_NO_INTERPRETER;
	w->number++;
	walk_clear_stack(w);

	if (current && walk_read_tstate(w, l, current) == 0) {
		walk_enter_thread(w, l, current);
		return 0;
	}
	if (!cached || walk_read_tstate(w, l, cached) != 0)
		return 0;
	if (!walk_tstate_active(w, l))
		return 1;
	walk_enter_thread(w, l, cached);
	return 0;
}

/* several: the process has more than one interpreter, so that this thread may have another thread state as well. */
static __always_inline void walk_settle(struct walk *w, const struct pybpf_layout *l, __u64 cached, int several)
{
	if (several)
		w->fallback = cached;
	else
		walk_enter_thread(w, l, cached);
}

/*
 * Keeps a frame. The first PYBPF_HALF_FRAMES stay; from there on the second half is a ring, so that at the end it
 * holds the frames nearest the root: frame i > PYBPF_HALF_FRAMES lies at HALF + (i - HALF) % HALF.
 */
static __always_inline void walk_push(struct walk *w, __u64 code, __u32 sig, __s32 position)
{
	__u32 i = w->stack.depth;

	if (i >= PYBPF_MAX_FRAMES) {
		w->stack.flags |= PYBPF_STACK_CUT;
		i = PYBPF_HALF_FRAMES + ((i - PYBPF_HALF_FRAMES) & (PYBPF_HALF_FRAMES - 1));
	}
	i &= PYBPF_MAX_FRAMES - 1;
	w->frames[i].code = code;
	w->frames[i].sig = sig;
	w->frames[i].position = position;
	w->stack.depth++;
	w->hash = walk_mix(walk_mix(w->hash, code), (__u64)sig << 32 | (__u32)position);
}

/*
 * Makes the frame available in the chunk, from offset *at on. A frame a little below the last one is likely to have
 * its callers below it, too, and is read with them, but never from beyond its own page: that one may not be there, and
 * a fault costs more than a hundred frames.
 */
static __always_inline int walk_fetch_frame(struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 *at)
{
	__u64 window = l->frame_window, below = 0;

	if (window > PYBPF_FRAME_WINDOW)
		return -1;
	if (frame >= w->chunk_base && frame - w->chunk_base + window <= w->chunk_size) {
		*at = (__u32)(frame - w->chunk_base);
		return 0;
	}
	if (l->position_kind == PYBPF_POS_INSTR_PTR && frame < w->chunk_base && w->chunk_base - frame < WALK_CHUNK) {
		below = frame & WALK_PAGE_MASK;
		if (below > WALK_CHUNK - window)
			below = WALK_CHUNK - window;
	}
	w->chunk_base = frame - below;
	w->chunk_size = below + window;
	*at = (__u32)below;
	return walk_read(w, w->chunk, (__u32)(below + window), w->chunk_base);
}

/* Looks at one frame. */
static __always_inline enum walk_stop walk_step_frame(struct walk *w, const struct pybpf_layout *l)
{
	__u64 frame = w->frame, code;
	enum walk_verdict verdict;
	__u32 at, sig, flag;

	if (!frame)
		return WALK_ROOT;
	if (frame == w->checkpoint) {
		w->stack.flags |= PYBPF_STACK_CYCLE;
		return WALK_TORN;
	}
	if (w->steps >= w->next_checkpoint) {
		w->checkpoint = frame;
		w->next_checkpoint = 2 * w->steps;
	}
	if (++w->steps > PYBPF_MAX_WALK) {
		w->stack.flags |= PYBPF_STACK_NO_ROOT;
		return WALK_TORN;
	}
	if (walk_fetch_frame(w, l, frame, &at)) {
		w->stack.flags |= PYBPF_STACK_FAULT;
		return WALK_TORN;
	}
	w->frame = walk_frame_u64(w, at, l->frame_previous);
	if (walk_has_entries(l)) {
		w->at_entry = walk_is_entry(w, l, at);
		if (w->at_entry && !w->entry)
			w->entry = frame;
	}
	verdict = walk_judge(w, l, frame, at);
	if (verdict == WALK_NOT_NOW)
		return WALK_WRONG;
	if (verdict == WALK_NOT_ONE)
		return WALK_GOES_ON;
	code = walk_frame_u64(w, at, l->frame_code) & ~(__u64)l->code_tag_mask;
	flag = walk_code(w, l, code, &sig);
	if (flag == PYBPF_STACK_NOT_CODE && walk_has_cframe(l) && !w->stack.depth) {
		/* Leavings whose code object is gone. */
		w->unproved = 1;
		return WALK_WRONG;
	}
	if (flag)
		w->stack.flags |= flag;
	else
		walk_push(w, code, sig, walk_position(w, l, code, at));
	return WALK_GOES_ON;
}

/* Does one step. Returns 1 when the walk is done; result, depth, flags, hash and frames[] then hold its outcome. */
static __always_inline int walk_step(struct walk *w, const struct pybpf_layout *l)
{
	__u64 next = 0;

	if (w->phase == WALK_FRAME) {
		enum walk_stop stop = walk_step_frame(w, l);

		return stop == WALK_GOES_ON ? 0 : walk_end(w, l, stop);
	}
	if (w->phase == WALK_SEARCH)
		return walk_search(w, l);
	if (w->phase == WALK_COMPARE)
		return walk_compare(w);

	if (++w->steps > PYBPF_MAX_THREADS)
		return 1;
	if (w->phase == WALK_INTERP) {
		__u64 addr = w->interp ? w->interp + l->interp_next : w->interp_head;

		if (walk_read(w, &next, sizeof(next), addr) || !next) {
			if (!w->fallback || walk_read_tstate(w, l, w->fallback) != 0)
				return 1;
			w->steps = 0;
			walk_enter_thread(w, l, w->fallback);
			return 0;
		}
		w->result = WALK_NO_THREAD_STATE;
		w->interp = next;
		w->tstate = next + l->interp_threads_head - l->tstate_next;
		w->phase = WALK_THREAD;
		return 0;
	}

	/* w->tstate is the thread state whose next is to be looked at, or the list's head dressed up as one. */
	if (walk_read(w, &next, sizeof(next), w->tstate + l->tstate_next) || !next) {
		w->tstate = 0;
		w->phase = WALK_INTERP;
		return 0;
	}
	w->tstate = next;
	if (walk_read_tstate(w, l, next) != 0)
		return 0;
	if (!walk_tstate_active(w, l)) {
		if (!w->fallback)
			w->fallback = next;
		return 0;
	}
	w->steps = 0;
	walk_enter_thread(w, l, next);
	return 0;
}

#endif
