/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The running frame of 3.11 and 3.12 as the thread's data stack tells it, where the cframe does not.
 *
 * Each frame that is no generator's lies on the data stack, one behind the other, from the start of a chunk to the
 * thread state's datastack_top (_PyThreadState_PushFrame). So the last one there is known without any link. It is the
 * running frame, unless generators run above of it: those are listed by the thread state's exc_info, the innermost
 * first, and the frame of each lies in the generator object, behind its item of the list (gen_send_ex).
 */
#ifndef PYBPF_WALK_DATA_STACK_H
#define PYBPF_WALK_DATA_STACK_H

#include "walk_context.h"

/* _PyStackChunk.data; before it are previous, size in bytes, and top, in words of data. */
#define WALK_CHUNK_DATA 24
/* A frame without locals and stack (FRAME_SPECIALS_SIZE). */
#define WALK_SPECIALS 72
/* Limit of a frame's locals and stack, in words; no code object that a compiler made comes near it. */
#define WALK_FRAME_WORDS (1u << 20)
/* Bytes from an item of exc_info (gi_exc_state) to the item before it, to gi_frame_state and to gi_iframe. */
#define WALK_ITEM_PREVIOUS 8
#define WALK_ITEM_STATE    27
#define WALK_ITEM_FRAME    32
/* FRAME_EXECUTING */
#define WALK_EXECUTING 0

static __always_inline int walk_has_generator(const struct walk *w)
{
	return w->proof.item && !walk_in_tstate(w, w->proof.item);
}

/* Walks from the last frame on the data stack; if a generator's frame is passed, that one is below it. */
static __always_inline void walk_from_top(struct walk *w)
{
	w->attempt = WALK_TOP;
	w->phase = WALK_FRAME;
	w->frame = w->proof.top_frame;
	w->proof.sought = walk_has_generator(w) ? w->proof.item + WALK_ITEM_FRAME : 0;
	w->proof.met = 0;
	w->proof.at_bottom = 0;
}

/*
 * Returns whether the frame has a frame object: frame_obj comes right before the position, f_frame second in its
 * struct.
 */
static __always_inline int walk_has_object(struct walk *w, const struct pybpf_layout *l, __u64 frame)
{
	__u64 object = 0, back = 0;
	__u16 at = l->frame_entry != PYBPF_NO_OFFSET ? l->frame_previous : l->frame_position;

	return !walk_read(w, &object, sizeof(object), frame + at - 8) && object &&
	       !walk_read(w, &back, sizeof(back), object + l->code_type + 16) && back == frame;
}

/* On the C stack beside the cframe: inside the evaluation loop's own frame there. */
static __always_inline int walk_beside_cframe(const struct walk *w, __u64 addr)
{
	return addr - w->proof.cframe + WALK_C_FRAME < 2 * WALK_C_FRAME;
}

/*
 * Returns whether the generator with this frame, which is marked as running, does not yet: its frame is linked to none
 * (YIELD_VALUE of 3.12) or to its entry frame, and the new run's cframe has no frame of now. While greenlet switches,
 * the cframe has the frame that it has taken the link from or, from the next greenlet, one that it has made an object
 * for.
 */
static __always_inline int walk_is_about_to_run(struct walk *w, const struct pybpf_layout *l, __u64 frame)
{
	__u64 previous = 0, own = 0;

	return w->proof.top_frame && !walk_read(w, &previous, sizeof(previous), frame + l->frame_previous) &&
	       (!previous || walk_beside_cframe(w, previous)) &&
	       !walk_read(w, &own, sizeof(own), w->proof.cframe + l->cframe_frame) && own != frame &&
	       !walk_has_object(w, l, own);
}

/* Searches this chunk for the last frame below `end`. */
static __always_inline void walk_measure_chunk(struct walk *w, __u64 chunk, __u64 before, __u64 end)
{
	/* push_chunk leaves one word unused in the first chunk. */
	w->frame = chunk + WALK_CHUNK_DATA + (before ? 0 : 8);
	w->proof.chunk_before = before;
	w->proof.measure_end = end;
	w->proof.bottom_frame = w->frame;
	w->proof.top_frame = 0;
	w->proof.below_top = 0;
	w->phase = WALK_MEASURE;
	w->attempt = WALK_TOP;
}

/* Searches the chunk before, which is full. */
static __always_inline int walk_measure_before(struct walk *w)
{
	__u64 chunk = w->proof.chunk_before, header[3]; /* previous, size, top */

	if (walk_read(w, header, sizeof(header), chunk))
		return -1;
	walk_measure_chunk(w, chunk, header[0], chunk + WALK_CHUNK_DATA + header[2] * 8);
	return 0;
}

/*
 * Begins the search for the running frame on the data stack. Chunk, top and limit are stored one by one, when a chunk
 * is pushed or popped and when greenlet stores those of the next greenlet: they have to fit each other. Returns 1 when
 * they fit by now, so that the cframe's chain is to be walked once more.
 */
static __always_inline int walk_measure_begin(struct walk *w, const struct pybpf_layout *l)
{
	__u64 chunk = w->datastack_chunk, top = w->datastack_top, header[3]; /* previous, size, top */

	if (walk_read(w, &w->proof.item, sizeof(w->proof.item), w->tstate + l->tstate_exc_info))
		return -1;
	if (!chunk || !top) {
		/* A greenlet that has not called its first function yet, or has returned from it. */
		w->proof.top_frame = 0;
		walk_from_top(w);
		return 0;
	}
	if (walk_read(w, header, sizeof(header), chunk))
		return -1;
	if (w->datastack_limit != chunk + header[1]) {
		w->datastack_limit = chunk + header[1];
		return 1;
	}
	walk_measure_chunk(w, chunk, header[0], top);
	if (top - chunk <= header[1])
		return 0;
	return header[0] && !walk_measure_before(w) && w->proof.measure_end == top ? 0 : -1;
}

/* Until a frame has begun, prev_instr is the code unit before the first one. */
static __always_inline int walk_has_begun(const struct pybpf_layout *l, __u64 code, __u64 instr)
{
	return instr >= code + l->code_adaptive;
}

/* The frame at the top has been pushed, and its evaluation loop is about to begin: no link leads to it yet. */
static __always_inline int walk_top_has_begun(struct walk *w, const struct pybpf_layout *l, int *begun)
{
	__u64 code = 0, instr = 0;

	if (walk_read(w, &code, sizeof(code), w->proof.top_frame + l->frame_code) ||
	    walk_read(w, &instr, sizeof(instr), w->proof.top_frame + l->frame_position))
		return -1;
	*begun = walk_has_begun(l, code, instr);
	return 0;
}

/* Reads how long a frame of this code object is on the data stack. Returns a negative number when it cannot be. */
static __always_inline __s64 walk_frame_size(struct walk *w, const struct pybpf_layout *l, __u64 code)
{
	__u32 sizes[3]; /* co_stacksize, co_firstlineno, co_nlocalsplus */

	if (walk_read(w, sizes, sizeof(sizes), code + l->code_firstlineno - 4) || sizes[0] > WALK_FRAME_WORDS ||
	    sizes[2] > WALK_FRAME_WORDS)
		return -1;
	return WALK_SPECIALS + ((__s64)sizes[0] + sizes[2]) * 8;
}

/* One step along the data stack. Returns a negative number when it cannot be read. */
static __always_inline int walk_measure(struct walk *w, const struct pybpf_layout *l)
{
	__u64 code = 0;
	__s64 size;
	int begun = 1;

	if (w->frame < w->proof.measure_end) {
		if (walk_read(w, &code, sizeof(code), w->frame + l->frame_code))
			return -1;
		/* The chunk has been pushed for a frame, which is not there yet. */
		if (!code && !w->proof.top_frame && w->proof.chunk_before)
			return walk_measure_before(w);
		size = walk_frame_size(w, l, code);
		if (size < 0)
			return -1;
		w->proof.below_top = w->proof.top_frame;
		w->proof.top_frame = w->frame;
		w->frame += size;
		return 0;
	}
	if (w->frame > w->proof.measure_end || (w->proof.top_frame && walk_top_has_begun(w, l, &begun)))
		return -1;
	if (!begun && !w->proof.below_top && w->proof.chunk_before)
		return walk_measure_before(w);
	if (!begun)
		w->proof.top_frame = w->proof.below_top;
	walk_from_top(w);
	return 0;
}

/*
 * Handles the end of the chain from the frame at the top, or from a generator's; whole says whether it ended at its
 * root. Returns 1 when the chain is the thread's stack, 0 when another is to be walked, or a negative number. The
 * thread's chain passes the first frame of the top's chunk: greenlet 3.0.0 and 3.0.1 cut a chain at its last frame, for
 * which they have made a frame object. A generator that is about to run, or has just stopped, is on the list without a
 * link to the frames below.
 */
static __always_inline int walk_top_end(struct walk *w, const struct pybpf_layout *l, int whole)
{
	__u64 frame;
	__u8 state = 0;

	whole = whole && (!w->proof.top_frame || w->proof.at_bottom);
	if (w->attempt == WALK_TOP) {
		if (!whole)
			return -1;
		if (w->proof.met || !walk_has_generator(w))
			return 1;
		w->attempt = WALK_GENERATOR;
		w->proof.at_bottom = 0;
		w->frame = w->proof.sought;
		w->proof.sought = w->proof.top_frame;
		return 0;
	}
	if (whole && w->stack.depth && !w->stack.flags && (w->proof.met || !w->proof.top_frame))
		return 1;
	/* Both a traceback and greenlet, which may have changed the link, make an object for the frame. */
	frame = w->proof.item + WALK_ITEM_FRAME;
	if (walk_read(w, &state, sizeof(state), w->proof.item + WALK_ITEM_STATE) ||
	    (state == WALK_EXECUTING && walk_has_object(w, l, frame) && !walk_is_about_to_run(w, l, frame)) ||
	    walk_read(w, &w->proof.item, sizeof(w->proof.item), w->proof.item + WALK_ITEM_PREVIOUS))
		return -1;
	walk_from_top(w);
	return 0;
}

#endif
