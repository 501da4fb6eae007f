/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The walk from a thread to its Python frames, written once and compiled twice: by clang for the kernel, where
 * memory is that of the interrupted thread, and by the user-space compiler, where it is another process's or
 * saved memory.
 *
 * Whoever includes this defines walk_read(w, dst, size, addr): copies size bytes of the target's memory, returns 0
 * or a negative number. Where WALK_NOTES_FRAMES is defined, walk_note_frame(w, slot) is called for each frame that is
 * kept in frames[slot]; its address is then last_frame.
 *
 * The walk is a machine of small steps so that the kernel may run it in bpf_loop, or, where there is none, in tail
 * calls: walk_start, then walk_step until it returns 1, WALK_STEPS times at most, and walk_no_stack if it did not.
 * Where task_due is set, with WALK_TASKS, walk_find_task comes before the next step: in the kernel, a step that called
 * what finds the task would take more stack than a program has.
 */
#ifndef PYBPF_WALK_H
#define PYBPF_WALK_H

#include "walk_code.h"
#include "walk_task.h"
#include "walk_thread.h"

/* Goes from the thread state in the buffer to its first frame. */
static __always_inline void walk_enter_thread(struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	__u64 frame = walk_u64(w, l->tstate_frame);

	w->tstate = tstate;
	w->tstate_interp = walk_u64(w, l->tstate_interp);
	walk_trust_codes(w, l);
	w->outermost = walk_has_cframe_chain(l) ? walk_u64(w, l->tstate_cframe) : 0;
	w->phase = WALK_FRAME;
	w->result = WALK_OK;
	/* To 3.10 each Python function runs in its own evaluation loop. */
	w->at_entry = !walk_has_entries(l);
	/* Taken from the first thread state: callers in another interpreter are further out. */
	if (!w->stack.depth) {
		if (WALK_TASKS)
			walk_expect_task(w, l);
		w->run = w->outermost;
		w->attached = l->tstate_status && (walk_u32(w, l->tstate_status) & PYBPF_TSTATE_ACTIVE);
		/*
		 * 3.14+: a trace stores instr_ptr only before what may escape (_SET_IP), and a new run of the
		 * evaluation loop clears current_executor while it lasts. Who is detached has escaped.
		 */
		w->in_jit = l->tstate_executor && w->attached && walk_u64(w, l->tstate_executor);
	}
	if (l->tstate_datastack_top) {
		w->datastack_chunk = walk_u64(w, l->tstate_datastack_top - 8);
		w->datastack_top = walk_u64(w, l->tstate_datastack_top);
		w->datastack_limit = walk_u64(w, l->tstate_datastack_top + 8);
	} else {
		/* Without entry frames no candidate can be told from a popped frame. */
		w->nr_candidates = 0;
	}
	if (walk_finds_frame_by_cframe(l)) {
		walk_enter_cframe(w, l, frame);
		w->proof.cframe = frame;
	} else {
		w->frame = frame;
	}
}

/* Begins the search for this thread's states in all interpreters. */
static __always_inline void walk_look_for_states(struct walk *w)
{
	walk_clear_stack(w);
	walk_clear_states(w);
	w->tstate = 0;
	w->unbound = 0;
	w->interp = 0;
	w->frame = 0;
	w->unproved = 0;
	w->in_jit = 0;
	w->attempt = WALK_FIRST;
	w->next_candidate = 0;
	w->place = 0;
	w->remembered = 0;
	w->unreadable = 0;
	w->run = 0;
	w->attached = 0;
	w->phase = WALK_INTERP;
	w->result = WALK_NO_INTERPRETER;
	if (WALK_TASKS)
		w->task_due = 0;
}

/*
 * To 3.11 a thread without the GIL does not say which of its states it attached last; in a program with several
 * interpreters it may have several.
 */
static __always_inline int walk_may_have_swapped(struct walk *w, const struct pybpf_layout *l)
{
	__u64 interp = 0, next = 0;

	if (l->tstate_status || w->current || walk_read(w, &interp, sizeof(interp), w->interp_head))
		return 0;
	return walk_read(w, &next, sizeof(next), interp + l->interp_next) || next;
}

/*
 * Begins a walk; nr_candidates candidates are there already. current is the thread state that holds the GIL, or 0,
 * cached what an earlier walk left in states, or NULL; both are checked. Without a match walk_step searches
 * interpreters and their threads.
 */
static __always_inline void walk_start(struct walk *w, const struct pybpf_layout *l, __u64 current,
				       const struct walk_states *cached)
{
	w->current = walk_read_tstate(w, l, current) == WALK_OURS_LAST ? current : 0;
	walk_look_for_states(w);
	w->had_states = cached && cached->count;
	if (!cached || !cached->count || cached->count > WALK_STATES || walk_may_have_swapped(w, l))
		return;
	if (w->current ? cached->tstate[0] != w->current
		       : walk_read_tstate(w, l, cached->tstate[0]) != WALK_OURS_LAST) {
		w->unreadable = 0; /* its memory may be unmapped with it */
		return;
	}
	if (walk_tstate_id(w, l) != cached->id)
		return;
	w->states = *cached;
	w->remembered = 1;
	walk_enter_thread(w, l, cached->tstate[0]);
}

/* Keeps a frame, the next one from the leaf. */
static __always_inline void walk_push_word(struct walk *w, __u64 word, __u32 sig, __s32 position)
{
	__u32 i = w->stack.depth;

	if (i >= PYBPF_MAX_FRAMES) {
		w->stack.flags |= PYBPF_STACK_CUT;
		i = pybpf_frame_slot(i);
	}
	i &= PYBPF_MAX_FRAMES - 1;
	w->frames[i].word = word;
	w->frames[i].sig = sig;
	w->frames[i].position = position;
	w->stack.depth++;
	w->hash = walk_mix(walk_mix(w->hash, word), (__u64)sig << 32 | (__u32)position);
#ifdef WALK_NOTES_FRAMES
	walk_note_frame(w, i);
#endif
}

/* Keeps a function's frame, which the walk has just looked at. */
static __always_inline void walk_push(struct walk *w, __u64 code, __u32 sig, __s32 position)
{
	walk_push_word(w, code | PYBPF_FRAME_ENTRY(w->at_entry), sig, position);
}

/* The chain has reached an entry frame: C code called the frame that was kept last. */
static __always_inline void walk_mark_entry(struct walk *w)
{
	__u32 i = pybpf_frame_slot(w->stack.depth - 1);

	if (!w->stack.depth)
		return;
	w->frames[i & (PYBPF_MAX_FRAMES - 1)].word |= PYBPF_FRAME_ENTRY(1);
	w->hash = walk_mix(w->hash, PYBPF_FRAME_ENTRY(1));
}

/* Returns whether the frame is in the chunk; *at is then its offset there. */
static __always_inline int walk_has_frame(const struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 *at)
{
	__u64 offset = frame - w->chunk_base;

	*at = (__u32)offset;
	return offset < w->chunk_size && offset + l->frame_window <= w->chunk_size;
}

/*
 * Reads the frame into the chunk, at offset *at. The callers of a frame of the data stack lie below it: they are read
 * with it, but never beyond its page, because the page below may not be mapped, and a fault costs more than a hundred
 * frames. In an older chunk of the data stack, whose bounds are not known, the callers of a frame that lies a little
 * below the last one probably lie below it, too.
 */
static __always_inline int walk_fetch_frame(struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 *at)
{
	__u64 window = l->frame_window, page = frame & ~(__u64)WALK_PAGE_MASK, first = frame, below;

	if (window > PYBPF_FRAME_WINDOW)
		return -1;
	if (walk_has_frame(w, l, frame, at))
		return 0;
	if (l->position_kind == PYBPF_POS_INSTR_PTR) {
		if (frame - w->datastack_chunk < w->datastack_top - w->datastack_chunk)
			first = w->datastack_chunk;
		else if (frame < w->chunk_base && w->chunk_base - frame < WALK_CHUNK)
			first = page;
		if (first < page)
			first = page;
	}
	/* The mask is for verifiers that learn nothing from one register compared with another (before 6.8). */
	below = (frame - first) & WALK_CHUNK_MASK;
	w->chunk_base = frame - below;
	w->chunk_size = below + window;
	*at = (__u32)below;
	if (!walk_read(w, w->chunk, (__u32)(below + window), w->chunk_base))
		return 0;
	w->chunk_size = 0;
	return -1;
}

/* Examines the next frame, which is in the chunk at offset `at`. */
WALK_ONCE enum walk_stop walk_look_at_frame(struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	const struct walk_memo *memo;
	enum walk_verdict verdict;
	__u64 frame;

	if (!w || !l)
		return WALK_TORN;
	frame = w->frame;
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
	w->last_frame = frame;
	w->frame = walk_frame_u64(w, at, l->frame_previous);
	if (walk_has_entries(l))
		w->at_entry = walk_is_entry(w, l, frame, at);
	if (walk_is_shim(w, l, at) && !walk_in_tstate(w, frame)) {
		if (!w->in_order && frame <= w->outermost_entry)
			return WALK_WRONG;
		w->in_order = 1;
		w->outermost_entry = frame;
		if (!w->entry)
			w->entry = frame;
		walk_mark_entry(w);
	}
	verdict = walk_judge(w, l, frame, at);
	if (verdict == WALK_NOT_NOW)
		return WALK_WRONG;
	if (verdict == WALK_NOT_ONE)
		return WALK_GOES_ON;
	if (WALK_TASKS && frame - w->task_frame < WALK_INSIDE_CORO)
		w->stack.task_depth = w->stack.depth + 1;
	w->code = walk_frame_u64(w, at, l->frame_code) & ~(__u64)l->code_tag_mask;
	memo = walk_memo_of(w, w->code);
	if (!walk_is_known(w, memo, w->code) || walk_tlbc_index(w, l, at))
		return WALK_AT_CODE;
	walk_push(w, w->code, memo->sig, walk_position(w, l, w->code, frame, at, 0));
	return WALK_GOES_ON;
}

/* Continues with the code object of the last frame, which is in the chunk at offset `at`. */
static __always_inline enum walk_stop walk_look_at_code(struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	__u32 sig, flag = walk_code(w, l, w->code, &sig);

	if (flag == PYBPF_STACK_NOT_CODE && walk_finds_frame_by_cframe(l) && !w->stack.depth) {
		/* A stale frame whose code object is gone. */
		w->unproved = 1;
		return WALK_WRONG;
	}
	if (flag && flag != WALK_CODE_GOES_ON) {
		w->stack.flags |= flag;
		return WALK_GOES_ON;
	}
	w->position = walk_position(w, l, w->code, w->last_frame, at, walk_tlbc_index(w, l, at));
	if (flag)
		w->phase = WALK_TEXT;
	else
		walk_push(w, w->code, sig, w->position);
	return WALK_GOES_ON;
}

/*
 * Examines the next frames, as many as one read holds and as long as their code objects are known; or one frame with
 * its code object. A step for each frame would take longer than the frame itself.
 */
static __always_inline enum walk_stop walk_step_frames(struct walk *w, const struct pybpf_layout *l)
{
	enum walk_stop stop = WALK_ROOT;
	__u32 at = 0;

	if (w->frame && walk_fetch_frame(w, l, w->frame, &at)) {
		w->steps++;
		w->stack.flags |= PYBPF_STACK_FAULT;
		return WALK_TORN;
	}
	if (!w->steps && w->unproved && w->attempt == WALK_FIRST && w->frame && walk_finds_frame_by_cframe(l) &&
	    !walk_is_linked(w, l, w->frame, at))
		return WALK_WRONG;
	for (int i = 0; i < WALK_STEP_FRAMES; i++) {
		if (!w->frame)
			return WALK_ROOT;
		if (!walk_has_frame(w, l, w->frame, &at))
			return WALK_GOES_ON;
		stop = walk_look_at_frame(w, l, at);
		if (stop != WALK_GOES_ON)
			break;
	}
	return stop == WALK_AT_CODE ? walk_look_at_code(w, l, at) : stop;
}

/* Continues with the texts of the last frame's code object; their length says how many steps that takes. */
static __always_inline enum walk_stop walk_step_text(struct walk *w)
{
	int done = walk_texts_more(w);

	if (!done && w->steps <= PYBPF_MAX_WALK)
		return WALK_GOES_ON;
	w->phase = WALK_FRAME;
	if (!done) {
		w->stack.flags |= PYBPF_STACK_FAULT;
		return w->unproved ? WALK_WRONG : WALK_TORN;
	}
	walk_push(w, w->code, walk_code_end(w, w->code), w->position);
	return WALK_GOES_ON;
}

/* The place of the frames since the last thread state is not known: they are dropped. */
static __always_inline int walk_cut_callers(struct walk *w)
{
	/* The root half of a stack this deep has been overwritten. */
	if (w->stack.depth > PYBPF_MAX_FRAMES)
		return walk_no_stack(w);
	w->stack.depth = w->kept_depth;
	w->hash = w->kept_hash;
	w->stack.flags = w->kept_flags | PYBPF_STACK_NO_CALLERS;
	w->compiled = w->kept_compiled;
	return 1;
}

/*
 * Continues with the frames of the next thread state. They are the callers' if its innermost evaluation loop lies above
 * the outermost one so far on the C stack. Returns 1 when the walk is done.
 */
static __always_inline int walk_join(struct walk *w, const struct pybpf_layout *l)
{
	__u64 tstate = w->states.tstate[w->place & (WALK_STATES - 1)], interp = w->tstate_interp, innermost = 0;

	w->kept_depth = w->stack.depth;
	w->kept_hash = w->hash;
	w->kept_flags = w->stack.flags;
	w->kept_compiled = w->compiled;
	if (walk_read_tstate(w, l, tstate) != WALK_NOT_OURS)
		innermost = walk_innermost(w, l, tstate);
	if (!innermost && w->remembered) {
		walk_look_for_states(w);
		return 0;
	}
	/*
	 * To 3.9 nothing tells the order; in versions with entry frames, the first entry frame does (walk_step_frame).
	 */
	if (!innermost || (w->stack.depth && !walk_has_shims(l) && innermost <= w->outermost_entry))
		return walk_cut_callers(w);
	if (w->stack.depth && walk_u64(w, l->tstate_interp) != interp)
		walk_push_word(w, PYBPF_FRAME_KIND(PYBPF_FRAME_MARKER) | PYBPF_MARKER_INTERPRETER, 0, 0);
	w->checkpoint = 0;
	w->next_checkpoint = w->steps;
	w->at_entry = 0;
	w->in_order = !w->kept_depth;
	w->attempt = WALK_FIRST;
	w->unproved = 0;
	walk_enter_thread(w, l, tstate);
	return 0;
}

/*
 * Returns whether the callers of the first thread state may be others than the remembered ones: while its outermost
 * evaluation loop is the same, they are the same, too.
 */
static __always_inline int walk_has_other_callers(struct walk *w)
{
	if (w->remembered && w->outermost_entry != w->states.outermost_entry)
		return 1;
	w->states.outermost_entry = w->outermost_entry;
	return 0;
}

/* The chain of one thread state has ended. Returns 1 when the walk is done. */
static __always_inline int walk_outward(struct walk *w, const struct pybpf_layout *l)
{
	if (w->stack.flags & (PYBPF_STACK_FAULT | PYBPF_STACK_NO_ROOT | PYBPF_STACK_CYCLE))
		return 1;
	if (!w->place && walk_has_shims(l) && walk_has_other_callers(w)) {
		walk_look_for_states(w);
		return 0;
	}
	if (++w->place >= w->states.count)
		return 1;
	if (w->place >= WALK_STATES) {
		w->stack.flags |= PYBPF_STACK_NO_CALLERS;
		return 1;
	}
	if (!w->remembered)
		walk_sort_states(w, w->place);
	if (walk_has_shims(l))
		return walk_join(w, l);
	w->outermost_entry = ~0ULL;
	w->phase = WALK_CFRAME;
	return 0;
}

/*
 * 3.10 and 3.11: one step towards the cframe of the thread state's outermost evaluation loop. Returns 1 when the walk
 * is done.
 */
static __always_inline int walk_step_cframe(struct walk *w, const struct pybpf_layout *l)
{
	__u64 previous = 0;

	if (!walk_has_cframe_chain(l) || walk_in_tstate(w, w->outermost)) {
		if (w->place != 1 || !walk_has_other_callers(w))
			return walk_join(w, l);
		walk_look_for_states(w);
		return 0;
	}
	if (++w->steps > PYBPF_MAX_WALK ||
	    walk_read(w, &previous, sizeof(previous), w->outermost + l->cframe_previous)) {
		w->outermost_entry = ~0ULL;
		return walk_join(w, l);
	}
	w->outermost_entry = w->outermost;
	w->outermost = previous;
	return 0;
}

/* Begins with the thread state that the search has found. Returns 1 when the walk is done. */
static __always_inline int walk_enter_first(struct walk *w, const struct pybpf_layout *l)
{
	if (!w->last)
		walk_sort_states(w, 0);
	if (walk_read_tstate(w, l, w->states.tstate[0]) == WALK_NOT_OURS)
		return 1;
	w->states.id = walk_tstate_id(w, l);
	w->steps = 0;
	w->frame = 0;
	walk_enter_thread(w, l, w->states.tstate[0]);
	return 0;
}

/* All lists have been searched. Returns 1 when the walk is done. */
static __always_inline int walk_end_of_lists(struct walk *w, const struct pybpf_layout *l)
{
	/* Thread states other than the last one can only have callers. */
	if (w->unreadable && !w->last && (l->tstate_status || !w->states.count)) {
		w->states.count = 0;
		w->result = WALK_UNREADABLE;
	}
	if (!w->states.count)
		return 1;
	w->place = w->last;
	/*
	 * A single waiting thread state is the next one. The order of several is taken from the C stack, and from 3.13
	 * on from their frames on it.
	 */
	if (w->states.count <= w->place + 1 || !walk_has_shims(l) || walk_has_cframe_chain(l)) {
		w->place = 0;
		return walk_enter_first(w, l);
	}
	w->steps = 0;
	w->frame = 0;
	w->phase = WALK_PROBE;
	return 0;
}

/* One step towards the innermost entry frame (3.13+) of one thread state after the other. */
static __always_inline int walk_probe(struct walk *w, const struct pybpf_layout *l)
{
	__u32 place = w->place, at;

	if (place >= w->states.count || place >= WALK_STATES || w->steps > PYBPF_MAX_WALK) {
		w->place = 0;
		return walk_enter_first(w, l);
	}
	w->steps++;
	if (!w->frame) {
		w->tstate = w->states.tstate[place];
		w->innermost[place] = ~0ULL;
		if (walk_read_tstate(w, l, w->tstate) != WALK_NOT_OURS)
			w->frame = walk_u64(w, l->tstate_frame);
		w->place += !w->frame;
		return 0;
	}
	if (walk_fetch_frame(w, l, w->frame, &at)) {
		w->frame = 0;
	} else if (walk_is_shim(w, l, at) && !walk_in_tstate(w, w->frame)) {
		w->innermost[place] = w->frame;
		w->frame = 0;
	} else {
		w->frame = walk_frame_u64(w, at, l->frame_previous);
	}
	w->place += !w->frame;
	return 0;
}

/* Does one step. Returns 1 when the walk is done: the outcome is then in result, depth, flags, hash and frames[]. */
static __always_inline int walk_step(struct walk *w, const struct pybpf_layout *l)
{
	__u64 next = 0;
	enum walk_owner owner;

	if (w->phase == WALK_FRAME || w->phase == WALK_TEXT) {
		enum walk_stop stop = w->phase == WALK_FRAME ? walk_step_frames(w, l) : walk_step_text(w);

		if (stop == WALK_GOES_ON)
			return 0;
		if (w->place && !walk_is_callers(w, l, stop))
			return walk_cut_callers(w);
		return walk_end(w, l, stop) && walk_outward(w, l);
	}
	if (w->phase == WALK_MEASURE)
		return walk_measure(w, l) < 0 && walk_no_stack(w);
	if (w->phase == WALK_CFRAME)
		return walk_step_cframe(w, l);
	if (w->phase == WALK_PROBE)
		return walk_probe(w, l);

	if (++w->steps > PYBPF_MAX_THREADS)
		return walk_end_of_lists(w, l);
	if (w->phase == WALK_INTERP) {
		__u64 addr = w->interp ? w->interp + l->interp_next : w->interp_head;

		/* Before the first interpreter is made, the page with interp_head may not be mapped. */
		if (walk_read(w, &next, sizeof(next), addr) && (w->interp || w->had_states))
			w->unreadable = 1;
		if (!next)
			return walk_end_of_lists(w, l);
		w->result = WALK_NO_THREAD_STATE;
		w->interp = next;
		w->tstate = next + l->interp_threads_head - l->tstate_next;
		w->phase = WALK_THREAD;
		return 0;
	}

	/*
	 * w->tstate is the thread state whose `next` is read next, or an address at which the list's head looks like
	 * that field.
	 */
	if (walk_read(w, &next, sizeof(next), w->tstate + l->tstate_next))
		w->unreadable = 1;
	if (!next) {
		w->tstate = 0;
		w->phase = WALK_INTERP;
		return 0;
	}
	w->tstate = next;
	owner = walk_read_tstate(w, l, next);
	if (owner != WALK_NOT_OURS)
		walk_keep_state(w, l, owner);
	return 0;
}

#endif
