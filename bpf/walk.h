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
#include "walk_thread.h"

/* Goes from the thread state in the buffer to its first frame. */
static __always_inline void walk_enter_thread(struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	__u64 frame = walk_u64(w, l->tstate_frame);

	w->tstate = tstate;
	w->tstate_interp = walk_u64(w, l->tstate_interp);
	walk_trust_codes(w, l);
	w->outermost = walk_has_cframes(l) ? walk_u64(w, l->tstate_cframe) : 0;
	w->phase = WALK_FRAME;
	w->result = WALK_OK;
	/* To 3.10 each Python function runs in an evaluation loop of its own. */
	w->at_entry = !walk_has_entries(l);
	/* The first one's: callers of another interpreter are further out. */
	if (!w->stack.depth) {
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
		/* Without them no candidate can be told from a frame that was popped. */
		w->nr_candidates = 0;
	}
	if (walk_has_cframe(l)) {
		walk_enter_cframe(w, l, frame);
		w->proof.cframe = frame;
	} else {
		w->frame = frame;
	}
}

/* Sets out to look for this thread's states in all interpreters. */
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
}

/*
 * To 3.11 a thread without the GIL does not say which of its states it attached last, and with several interpreters it
 * may have several.
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
		w->unreadable = 0; /* its memory may be gone with it */
		return;
	}
	if (walk_tstate_id(w, l) != cached->id)
		return;
	w->states = *cached;
	w->remembered = 1;
	walk_enter_thread(w, l, cached->tstate[0]);
}

/*
 * Keeps a frame. The first PYBPF_HALF_FRAMES stay; from there on the second half is a ring, so that at the end it
 * holds the frames nearest the root: frame i > PYBPF_HALF_FRAMES lies at HALF + (i - HALF) % HALF.
 */
static __always_inline void walk_push_word(struct walk *w, __u64 word, __u32 sig, __s32 position)
{
	__u32 i = w->stack.depth;

	if (i >= PYBPF_MAX_FRAMES) {
		w->stack.flags |= PYBPF_STACK_CUT;
		i = PYBPF_HALF_FRAMES + ((i - PYBPF_HALF_FRAMES) & (PYBPF_HALF_FRAMES - 1));
	}
	i &= PYBPF_MAX_FRAMES - 1;
	w->frames[i].word = word;
	w->frames[i].sig = sig;
	w->frames[i].position = position;
	w->stack.depth++;
	w->hash = walk_mix(walk_mix(w->hash, word), (__u64)sig << 32 | (__u32)position);
}

/* Keeps a function's frame, which the walk has just looked at. */
static __always_inline void walk_push(struct walk *w, __u64 code, __u32 sig, __s32 position)
{
	walk_push_word(w, code | PYBPF_FRAME_ENTRY(w->at_entry), sig, position);
}

/* The chain has come to an entry frame: C code called the last frame that was kept. */
static __always_inline void walk_mark_entry(struct walk *w)
{
	__u32 i = w->stack.depth - 1;

	if (!w->stack.depth)
		return;
	if (i >= PYBPF_MAX_FRAMES)
		i = PYBPF_HALF_FRAMES + ((i - PYBPF_HALF_FRAMES) & (PYBPF_HALF_FRAMES - 1));
	w->frames[i & (PYBPF_MAX_FRAMES - 1)].word |= PYBPF_FRAME_ENTRY(1);
	w->hash = walk_mix(w->hash, PYBPF_FRAME_ENTRY(1));
}

/* Is the frame in the chunk? Then it begins at offset *at. */
static __always_inline int walk_has_frame(const struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 *at)
{
	__u64 offset = frame - w->chunk_base;

	*at = (__u32)offset;
	return offset < w->chunk_size && offset + l->frame_window <= w->chunk_size;
}

/*
 * Makes the frame available in the chunk, from offset *at on. Below a frame of the data stack lie its callers: they are
 * read with it, but never from beyond its own page: that one may not be there, and a fault costs more than a hundred
 * frames. In an older chunk of the data stack, whose bounds are not known, a frame a little below the last one is
 * likely to have its callers below it, too.
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

/* Looks at the next frame, which is in the chunk at offset `at`. */
static __always_inline enum walk_stop walk_look_at_frame(struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	const struct walk_memo *memo;
	enum walk_verdict verdict;
	__u64 frame = w->frame;

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
	w->code = walk_frame_u64(w, at, l->frame_code) & ~(__u64)l->code_tag_mask;
	memo = walk_memo_of(w, w->code);
	if (!walk_is_known(w, memo, w->code) || walk_tlbc_index(w, l, at))
		return WALK_AT_CODE;
	walk_push(w, w->code, memo->sig, walk_position(w, l, w->code, frame, at, 0));
	return WALK_GOES_ON;
}

/* Reads on at the code object of the last frame, which is in the chunk at offset `at`. */
static __always_inline enum walk_stop walk_look_at_code(struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	__u32 sig, flag = walk_code(w, l, w->code, &sig);

	if (flag == PYBPF_STACK_NOT_CODE && walk_has_cframe(l) && !w->stack.depth) {
		/* Leavings whose code object is gone. */
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
 * Looks at the next frames, as far as one read takes them and their code objects are known, or at one with its code
 * object: to come back for each would take longer than to look at it.
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

/* Reads on in the texts of the last frame's code object, which says by its length how long that takes. */
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

/* Where the frames since the last thread state belong cannot be told: they are taken back. */
static __always_inline int walk_cut_callers(struct walk *w)
{
	/* The root half of so deep a stack has been written over. */
	if (w->stack.depth > PYBPF_MAX_FRAMES)
		return walk_no_stack(w);
	w->stack.depth = w->kept_depth;
	w->hash = w->kept_hash;
	w->stack.flags = w->kept_flags | PYBPF_STACK_NO_CALLERS;
	w->compiled = w->kept_compiled;
	return 1;
}

/*
 * Goes on with the frames of the next thread state. They are the callers' if its innermost run of the evaluation loop
 * lies above the outermost one so far on the C stack. Returns 1 when the walk is done.
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
	/* To 3.9 nothing tells; where there are entry frames the first one does, in walk_step_frame. */
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

/* The chain of one thread state has ended. Returns 1 when the walk is done. */
static __always_inline int walk_outward(struct walk *w, const struct pybpf_layout *l)
{
	if (w->stack.flags & (PYBPF_STACK_FAULT | PYBPF_STACK_NO_ROOT | PYBPF_STACK_CYCLE))
		return 1;
	if (!w->place) {
		/* While it runs from where it did, what was outside of it still is. */
		if (w->remembered && w->outermost_entry != w->states.outermost_entry) {
			walk_look_for_states(w);
			return 0;
		}
		w->states.outermost_entry = w->outermost_entry;
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

/* 3.10 and 3.11: one step on to the cframe of the thread state's outermost run. Returns 1 when the walk is done. */
static __always_inline int walk_step_cframe(struct walk *w, const struct pybpf_layout *l)
{
	__u64 previous = 0;

	if (!walk_has_cframes(l) || walk_in_tstate(w, w->outermost))
		return walk_join(w, l);
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

/* All lists have been looked at. Returns 1 when the walk is done. */
static __always_inline int walk_end_of_lists(struct walk *w, const struct pybpf_layout *l)
{
	/* Of others than the last one, callers are all there could be to show. */
	if (w->unreadable && !w->last && (l->tstate_status || !w->states.count)) {
		w->states.count = 0;
		w->result = WALK_UNREADABLE;
	}
	if (!w->states.count)
		return 1;
	w->place = w->last;
	/* One that waits is the next one. Of several the C stack tells, and from 3.13 on their frames tell where there.
	 */
	if (w->states.count <= w->place + 1 || !walk_has_shims(l) || walk_has_cframes(l)) {
		w->place = 0;
		return walk_enter_first(w, l);
	}
	w->steps = 0;
	w->frame = 0;
	w->phase = WALK_PROBE;
	return 0;
}

/* One step on to a thread state's innermost entry frame (3.13+), of one after the other. */
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

/* Does one step. Returns 1 when the walk is done; result, depth, flags, hash and frames[] then hold its outcome. */
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

		/* Before there is an interpreter, the page that is to tell of it may not be there. */
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

	/* w->tstate is the thread state whose next is to be looked at, or the list's head dressed up as one. */
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
