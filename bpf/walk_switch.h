/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where a chain of frames ends, whether it is the stack of now, and where else the stack may be when it is not: a
 * sample can come while the interpreter goes from one frame to another.
 */
#ifndef PYBPF_WALK_SWITCH_H
#define PYBPF_WALK_SWITCH_H

#include "walk_code.h"
#include "walk_data_stack.h"

/* Builds whose chains come to an entry frame: every run of the evaluation loop has one (3.11+). */
static __always_inline int walk_has_entries(const struct pybpf_layout *l)
{
	return l->frame_entry != PYBPF_NO_OFFSET || l->frame_owner != PYBPF_NO_OFFSET;
}

/* 3.11 and 3.12: the cframe says which frame runs. */
static __always_inline int walk_finds_frame_by_cframe(const struct pybpf_layout *l)
{
	return l->cframe_frame != PYBPF_NO_OFFSET;
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
	w->proof.outer_frame = 0;
	/* Only the cframe inside the thread state has none before it, and its frame needs no proof. */
	w->unproved = cframe && !walk_in_tstate(w, cframe);
	w->proof.entered = 0;
	w->proof.met = 0;
	if (w->unproved && !(pair[1] & 7))
		walk_read(w, &w->proof.outer_frame, sizeof(w->proof.outer_frame), pair[1] + l->cframe_frame);
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
	w->compiled = 0;
	if (WALK_TASKS)
		w->stack.task_depth = 0;
	w->stack.depth = 0;
	w->stack.flags = 0;
}

/* No chain is known to be the stack. */
static __always_inline int walk_no_stack(struct walk *w)
{
	walk_clear_stack(w);
	w->result = WALK_OK;
	w->stack.flags = PYBPF_STACK_FAULT;
	return 1;
}

/* Why a chain ends. */
enum walk_stop {
	WALK_GOES_ON = 0,
	WALK_ROOT,  /* there is no previous frame */
	WALK_TORN,  /* the frame cannot be read, or the chain is a circle */
	WALK_WRONG, /* it is no chain of now */
	/* Not an end of the chain: the code object of the last frame is to be read before the next frames. */
	WALK_AT_CODE,
};

/*
 * The chain ends at a frame whose link to the entry frame below greenlet has taken away: while it switches, and until
 * it switches back, it links each Python frame of 3.12+ to the next one, past the entry frames on the C stack, and the
 * outermost to none (expose_frames of greenlet 3.0.2 and later). It has made a frame object for each before, which no
 * frame has that is just being pushed; a generator's frame that is alone may be one that has just stopped.
 */
static __always_inline int walk_is_exposed(struct walk *w, const struct pybpf_layout *l)
{
	__u8 owner = 0;

	if (l->frame_owner == PYBPF_NO_OFFSET || !w->stack.depth ||
	    walk_read(w, &owner, sizeof(owner), w->last_frame + l->frame_owner) || owner > WALK_OWNED_BY_GENERATOR ||
	    (owner == WALK_OWNED_BY_GENERATOR && w->steps == 1))
		return 0;
	return walk_has_object(w, l, w->last_frame);
}

/* The chain that ends here has come to the root of a thread or of a greenlet. */
static __always_inline int walk_is_whole(struct walk *w, const struct pybpf_layout *l, enum walk_stop stop)
{
	if (stop != WALK_ROOT)
		return 0;
	return !walk_has_entries(l) || w->at_entry || (w->attempt != WALK_REGISTER_FRAME && walk_is_exposed(w, l));
}

/* The chain from a caller's thread state, which waits, is its stack. */
static __always_inline int walk_is_callers(struct walk *w, const struct pybpf_layout *l, enum walk_stop stop)
{
	return stop != WALK_WRONG && (walk_finds_frame_by_cframe(l) ? !w->unproved : walk_is_whole(w, l, stop));
}

/* Begins at the next register that may hold the frame. Returns 1 when no register is left. */
static __always_inline int walk_try_next(struct walk *w)
{
	__u64 candidate;

	walk_clear_stack(w);
	w->attempt = WALK_REGISTER_FRAME;
	if (w->next_candidate >= w->nr_candidates)
		return walk_no_stack(w);
	candidate = w->candidates[w->next_candidate++ & (WALK_CANDIDATES - 1)];
	/* Not a pointer: the next step tries the next register. */
	w->frame = walk_is_pointer(candidate) ? candidate : 0;
	w->unproved = 1;
	return 0;
}

/* The chain from the cframe is not the stack of now. Returns 1 when no other chain is left to try. */
static __always_inline int walk_end_unproved(struct walk *w, const struct pybpf_layout *l, enum walk_stop stop)
{
	int end;

	if (w->attempt == WALK_FIRST) {
		end = walk_measure_begin(w, l);
		if (end > 0)
			walk_enter_cframe(w, l, w->proof.cframe);
	} else {
		end = walk_top_end(w, l, !w->steps || walk_is_whole(w, l, stop));
		if (end > 0)
			return 1;
	}
	if (end < 0)
		return walk_no_stack(w);
	walk_clear_stack(w);
	return 0;
}

/*
 * The chain ends here. Returns 1 when the walk does, too.
 *
 * A chain of 3.11+ ends at an entry frame. One that does not was met while the evaluation loop switched frames: the
 * compiler may have let it unlink a generator's frame before it stored the caller's (gcc does so in 3.12's
 * YIELD_VALUE), and the caller is then only in a register. So each register is tried: the frame that the loop works on
 * is the one whose chain comes to an entry frame and that the data stack has not popped. In 3.11 and 3.12 the cframe
 * may be the one that is not ready, or lie on a C stack that greenlet has put away: there the data stack tells. A stack
 * that is found in none of these ways is not reported.
 */
static __always_inline int walk_end(struct walk *w, const struct pybpf_layout *l, enum walk_stop stop)
{
	if (walk_finds_frame_by_cframe(l)) {
		if (w->attempt == WALK_FIRST && (!w->unproved || (w->stack.flags & PYBPF_STACK_NO_ROOT)))
			return 1;
		return walk_end_unproved(w, l, stop);
	}
	if (w->attempt == WALK_FIRST) {
		/* A chain that cannot be read to its end is true as far as it was read. */
		if (stop == WALK_TORN || !w->steps || walk_is_whole(w, l, stop))
			return 1;
	} else if (w->stack.depth && !w->stack.flags && walk_is_whole(w, l, stop)) {
		return 1;
	}
	return walk_try_next(w);
}

/* Returns whether the frame at `at` is not a Python frame. */
static __always_inline int walk_is_shim(const struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	return l->frame_owner != PYBPF_NO_OFFSET && walk_frame_u8(w, at, l->frame_owner) >= l->owner_not_python;
}

/* Returns whether the frame at `at` is on a data stack. In 3.11 the owner follows is_entry. */
static __always_inline int walk_is_on_data_stack(const struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	__u16 owner = l->frame_entry != PYBPF_NO_OFFSET ? l->frame_entry + 1 : l->frame_owner;

	return walk_frame_u8(w, at, owner) == WALK_OWNED_BY_THREAD;
}

/* Returns whether the frame at `at` is the first of its evaluation loop. */
static __always_inline int walk_is_entry(const struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 at)
{
	if (l->frame_entry != PYBPF_NO_OFFSET)
		return walk_frame_u8(w, at, l->frame_entry);
	/* Compiled code has no evaluation loop and no entry frame: a program of Nuitka's begins so. */
	return walk_is_shim(w, l, at) || (!walk_finds_frame_by_cframe(l) && walk_is_compiled(w, l, frame, at));
}

/*
 * Returns whether the cframe's frame, which is in the chunk at offset `at`, is known to be linked to its caller. The
 * compiler may let the evaluation loop store a new frame in the cframe before it links the frame to its caller (gcc
 * does so for DISPATCH_INLINED of 3.11 and 3.12): until then the link is that of an earlier frame in the same place. So
 * of a frame that has not begun, the caller must be the frame right below it, and no generator may run. The first frame
 * of a run of the evaluation loop needs no proof here: the entry frame has its own.
 */
static __always_inline int walk_is_linked(struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 at)
{
	__u64 caller = walk_frame_u64(w, at, l->frame_previous), code = 0, item = 0;
	__u8 owner = 0;

	if (walk_has_begun(l, walk_frame_u64(w, at, l->frame_code), walk_frame_u64(w, at, l->frame_position)) ||
	    walk_is_entry(w, l, frame, at))
		return 1;
	if (l->frame_owner != PYBPF_NO_OFFSET &&
	    (walk_read(w, &owner, sizeof(owner), caller + l->frame_owner) || owner >= l->owner_not_python))
		return 1;
	return !walk_read(w, &item, sizeof(item), w->tstate + l->tstate_exc_info) && walk_in_tstate(w, item) &&
	       !walk_read(w, &code, sizeof(code), caller + l->frame_code) &&
	       caller + walk_frame_size(w, l, code) == frame;
}

enum walk_verdict {
	WALK_PYTHON,  /* a frame to keep */
	WALK_NOT_ONE, /* not a Python frame, or a stale one: the chain continues */
	WALK_NOT_NOW, /* not a part of the thread's stack */
};

/*
 * What to do with the frame at `at`, whose link has been followed; an entry frame may prove the chain. A frame beyond
 * the data stack's top has been popped: no chain leads there, but that 3.11 unlinks a frame just after it pops it. The
 * loop works on no entry frame; and of 3.12's frames none but those lie on the C stack: what lies beside a cframe can
 * only be stale. The first frame that is no generator's is in the data stack's last chunk: while greenlet switches
 * in 3.11, a cframe of the next greenlet, even that of an outer run, may lie where the thread's own was.
 */
static __always_inline enum walk_verdict walk_judge(struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 at)
{
	int shim = walk_is_shim(w, l, at), popped = 0;

	if (!w->unproved)
		return shim ? WALK_NOT_ONE : WALK_PYTHON;
	if (w->attempt == WALK_TOP || w->attempt == WALK_GENERATOR) {
		w->proof.met |= frame == w->proof.sought;
		w->proof.at_bottom |= frame == w->proof.bottom_frame;
		return shim ? WALK_NOT_ONE : WALK_PYTHON;
	}
	if (frame >= w->datastack_top && frame < w->datastack_limit) {
		popped = l->frame_entry != PYBPF_NO_OFFSET && !w->at_entry && w->attempt == WALK_FIRST &&
			 w->steps == 1 && frame == w->datastack_top;
		if (!popped)
			return WALK_NOT_NOW;
	}
	if (shim && w->attempt == WALK_REGISTER_FRAME && !w->stack.depth)
		return WALK_NOT_NOW;
	if (walk_finds_frame_by_cframe(l)) {
		w->proof.met |= frame - w->datastack_chunk < w->datastack_top - w->datastack_chunk;
		if (!w->proof.met && !popped && walk_is_on_data_stack(w, l, at))
			return WALK_NOT_NOW;
		if (!w->proof.entered) {
			if (w->at_entry ? w->frame != w->proof.outer_frame : walk_beside_cframe(w, frame))
				return WALK_NOT_NOW;
			w->proof.entered = w->at_entry;
		}
		w->unproved = !w->proof.entered || !w->proof.met;
	}
	return shim || popped ? WALK_NOT_ONE : WALK_PYTHON;
}

#endif
