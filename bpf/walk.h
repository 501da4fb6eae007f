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
 * calls: walk_start, then walk_step until it returns 1.
 */
#ifndef PYBPF_WALK_H
#define PYBPF_WALK_H

#include "pybpf.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* One buffer serves each struct in turn; offsets are masked so that the verifier sees them inside it. */
#define WALK_BUFFER_MASK 511
_Static_assert(PYBPF_TSTATE_WINDOW <= WALK_BUFFER_MASK + 1 && PYBPF_CODE_WINDOW <= WALK_BUFFER_MASK + 1 &&
		       PYBPF_FRAME_WINDOW <= WALK_BUFFER_MASK + 1,
	       "every window fits the buffer");

/*
 * Frames of 3.11+ lie one below the other in the thread's data stack: one read takes as many as fit. The room behind
 * the mask takes the window of the last.
 */
#define WALK_CHUNK      1024
#define WALK_CHUNK_MASK (WALK_CHUNK - 1)
/* Of the smallest pages. */
#define WALK_PAGE_MASK 4095
/* No PyThreadState of 3.11 or 3.12 is larger; the first cframe of its thread is inside. */
#define WALK_TSTATE_SIZE 1024
/* So many frames with code objects are no accident: such a chain needs no other proof. */
#define WALK_PROOF_DEPTH 16
/* Offsets inside one frame. */
#define WALK_FRAME_MASK 255
_Static_assert(PYBPF_FRAME_WINDOW <= WALK_FRAME_MASK + 1, "every offset of a frame is inside the mask");

/* Signatures of code objects met in this walk, by address: recursion and wrappers meet the same ones again. */
#define WALK_MEMO 32

struct walk_memo {
	__u64 code;
	__u32 sig;
	__u32 walk; /* number of the walk that it is from: a later one may meet another object there */
};

/* The registers of the interrupted thread. */
#define WALK_CANDIDATES 32

enum walk_phase {
	WALK_INTERP, /* looking at the next interpreter for this thread */
	WALK_THREAD, /* looking at the next thread state */
	WALK_FRAME,
};

/* Where the walk took the first frame from. */
enum walk_attempt {
	WALK_FIRST, /* the thread state */
	WALK_CANDIDATE,
	WALK_OUTER, /* the outer run of the evaluation loop */
};

enum walk_result {
	WALK_OK = 0,          /* frames[] holds what was found, depth says how many */
	WALK_NO_INTERPRETER,  /* there is no interpreter (yet, or any more) */
	WALK_NO_THREAD_STATE, /* no thread state is this thread's */
};

struct walk {
	/* What the caller gives. */
	__u64 thread_id; /* pthread_self() of the thread */
	__u64 interp_head;
	__u64 code_type;

	__u64 tstate;   /* found, or 0 */
	__u64 fallback; /* thread state of this thread that is not attached */
	__u64 interp;
	__u64 frame;
	/* Where else the frame may be when the thread state's is being switched: see walk_end. */
	__u64 candidates[WALK_CANDIDATES];
	__u32 nr_candidates;
	__u32 next_candidate;
	__u64 datastack_top, datastack_limit;
	/* 3.11, 3.12: see walk_enter_cframe. */
	__u64 cframe, outer_cframe, outer_frame;
	__u32 unproved;   /* what is walked may be no stack of now */
	__u32 attempt;    /* enum walk_attempt */
	__u32 no_outer;   /* where the outer run's cframe is has not been stored yet: a register may have it */
	__u32 at_entry;   /* the last frame was the first of its run of the evaluation loop */
	__u64 checkpoint; /* a frame passed before: meeting it again is a circle (Brent) */
	__u64 hash;
	__u32 next_checkpoint;
	__u32 phase;  /* enum walk_phase */
	__u32 result; /* enum walk_result */
	__u32 steps;
	__u32 number; /* of this walk, for the memo; the caller's memory keeps it from one walk to the next */
	__u32 pad;
	__u64 chunk_base; /* address of chunk[0] */
	__u64 chunk_size; /* bytes of it that are there */
	struct walk_memo memo[WALK_MEMO];
	__u8 chunk[WALK_CHUNK + WALK_FRAME_MASK + 1 + 8];
	__u8 buffer[WALK_BUFFER_MASK + 1 + 8];
	struct pybpf_stack_event stack; /* followed by its frames */
	struct pybpf_frame frames[PYBPF_MAX_FRAMES];
};
_Static_assert(__builtin_offsetof(struct walk, frames) ==
		       __builtin_offsetof(struct walk, stack) + sizeof(struct pybpf_stack_event),
	       "the stack event's frames follow its header");

static __always_inline __u64 walk_u64(const struct walk *w, __u16 offset)
{
	return *(const __u64 *)(w->buffer + (offset & (WALK_BUFFER_MASK & ~7)));
}

static __always_inline __u32 walk_u32(const struct walk *w, __u16 offset)
{
	return *(const __u32 *)(w->buffer + (offset & (WALK_BUFFER_MASK & ~3)));
}

static __always_inline __u8 walk_u8(const struct walk *w, __u16 offset)
{
	return w->buffer[offset & WALK_BUFFER_MASK];
}

/* Odd constants of full avalanche under multiply and shift (splitmix64's finalizer, Steele et al. 2014). */
static __always_inline __u64 walk_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0xbf58476d1ce4e5b9ULL;
	return hash ^ (hash >> 29);
}

/* Fields of the frame that lies at offset `at` of the chunk. */
static __always_inline __u64 walk_frame_u64(const struct walk *w, __u32 at, __u16 offset)
{
	return *(const __u64 *)(w->chunk + (at & WALK_CHUNK_MASK & ~7) + (offset & (WALK_FRAME_MASK & ~7)));
}

static __always_inline __u32 walk_frame_u32(const struct walk *w, __u32 at, __u16 offset)
{
	return *(const __u32 *)(w->chunk + (at & WALK_CHUNK_MASK & ~7) + (offset & (WALK_FRAME_MASK & ~3)));
}

static __always_inline __u8 walk_frame_u8(const struct walk *w, __u32 at, __u16 offset)
{
	return w->chunk[(at & WALK_CHUNK_MASK & ~7) + (offset & WALK_FRAME_MASK)];
}

static __always_inline int walk_window(struct walk *w, __u64 addr, __u32 size, __u32 limit)
{
	if (size > limit)
		return -1;
	return walk_read(w, w->buffer, size, addr);
}

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

/* Goes from the thread state in the buffer to its first frame. */
static __always_inline void walk_enter_thread(struct walk *w, const struct pybpf_layout *l, __u64 tstate)
{
	__u64 frame = walk_u64(w, l->tstate_frame);

	w->tstate = tstate;
	w->phase = WALK_FRAME;
	w->result = WALK_OK;
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
		w->no_outer = w->unproved && !w->outer_cframe;
	} else {
		w->frame = frame;
	}
}

static __always_inline void walk_clear_stack(struct walk *w)
{
	w->checkpoint = 0;
	w->hash = 0;
	w->next_checkpoint = 1;
	w->steps = 0;
	w->chunk_base = 0;
	w->chunk_size = 0;
	w->stack.depth = 0;
	w->stack.flags = 0;
}

/*
 * Begins a walk; nr_candidates candidates are there already. current is the thread state that holds the GIL, cached the
 * one that was this thread's at an earlier sample; either may be 0 and is checked. Without a match walk_step searches
 * interpreters and their threads. several: the process has more than one interpreter, so that this thread may have more
 * than one thread state.
 */
static __always_inline void walk_start(struct walk *w, const struct pybpf_layout *l, __u64 current, __u64 cached,
				       int several)
{
	w->tstate = 0;
	w->fallback = 0;
	w->interp = 0;
	w->frame = 0;
	w->unproved = 0;
	w->at_entry = 0;
	w->attempt = WALK_FIRST;
	w->next_candidate = 0;
	w->outer_cframe = 0;
	w->no_outer = 0;
	w->phase = WALK_INTERP;
	w->result = WALK_NO_INTERPRETER;
	w->number++;
	walk_clear_stack(w);

	if (current && walk_read_tstate(w, l, current) == 0) {
		walk_enter_thread(w, l, current);
		return;
	}
	if (!cached || walk_read_tstate(w, l, cached) != 0)
		return;
	if (several && !walk_tstate_active(w, l)) {
		w->fallback = cached;
		return;
	}
	walk_enter_thread(w, l, cached);
}

/* Bytes of a string object, from its length on, that tell it from another: length, state and some 32 bytes of text. */
#define WALK_STRING_BYTES 64

/* Mixes in what a string says: its length and its first characters, and not its hash, which may be set later. */
static __always_inline __u64 walk_mix_string(struct walk *w, const struct pybpf_layout *l, __u64 hash, __u64 string)
{
	__u64 addr = string + l->str_length, room = WALK_PAGE_MASK + 1 - (addr & WALK_PAGE_MASK);
	__u64 text[WALK_STRING_BYTES / 8] = {};

	/* Beyond the page may be nothing. */
	if (room > WALK_STRING_BYTES)
		room = WALK_STRING_BYTES;
	if (walk_read(w, text, (__u32)room, addr))
		return hash;
	hash = walk_mix(hash, text[0]);
	hash = walk_mix(hash, text[2]);
	/* In 3.x this is wstr, which may be set later. */
	if (l->string_kind == PYBPF_STR_BYTES)
		hash = walk_mix(hash, text[3]);
	hash = walk_mix(hash, text[4]);
	hash = walk_mix(hash, text[5]);
	hash = walk_mix(hash, text[6]);
	return walk_mix(hash, text[7]);
}

/*
 * A number that differs between code objects that live at one address one after the other: the code object is in the
 * buffer. Addresses of its parts are mixed in, but they, too, are reused; co_version (3.12+) is not. Before, what the
 * name and the path say stands in.
 */
static __always_inline __u32 walk_code_signature(struct walk *w, const struct pybpf_layout *l)
{
	__u64 name = walk_u64(w, l->code_name), file = walk_u64(w, l->code_filename);
	__u64 hash = walk_mix(walk_mix(name, file), walk_u64(w, l->code_linetable));

	hash = walk_mix(hash, walk_u32(w, l->code_firstlineno));
	if (l->code_version != PYBPF_NO_OFFSET)
		hash = walk_mix(hash, walk_u32(w, l->code_version));
	else
		hash = walk_mix_string(w, l, walk_mix_string(w, l, hash, name), file);
	return (__u32)(hash ^ (hash >> 32));
}

/*
 * Free-threaded 3.14+: a thread runs its own copy of the bytecode, co_tlbc->entries[tlbc_index] (struct _PyCodeArray:
 * a size, then pointers). Returns the position in terms of the code object's own copy.
 */
static __always_inline __s64 walk_tlbc_position(struct walk *w, const struct pybpf_layout *l, __u64 code, __u64 instr,
						__s32 index)
{
	__u64 array = 0, base = 0;
	__s64 count = 0;

	if (walk_read(w, &array, sizeof(array), code + l->code_tlbc) || walk_read(w, &count, sizeof(count), array) ||
	    index < 0 || index >= count || walk_read(w, &base, sizeof(base), array + 8 + (__u64)index * 8) || !base)
		return -1;
	return (__s64)(instr - base) + l->code_adaptive;
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

/* Returns the code object's signature in *sig. Returns 0, or the flag that says why there is none. */
static __always_inline __u32 walk_code(struct walk *w, const struct pybpf_layout *l, __u64 code, __u32 *sig)
{
	struct walk_memo *memo = &w->memo[(code >> 5) & (WALK_MEMO - 1)];

	if (memo->code == code && memo->walk == w->number) {
		*sig = memo->sig;
		return 0;
	}
	if (walk_window(w, code, l->code_window, PYBPF_CODE_WINDOW))
		return PYBPF_STACK_FAULT;
	if (w->code_type && walk_u64(w, l->code_type) != w->code_type)
		return PYBPF_STACK_NOT_CODE;
	*sig = walk_code_signature(w, l);
	memo->code = code;
	memo->sig = *sig;
	memo->walk = w->number;
	return 0;
}

/* Where the frame is in its code object: see struct pybpf_frame. */
static __always_inline __s32 walk_position(struct walk *w, const struct pybpf_layout *l, __u64 code, __u32 at)
{
	__s32 tlbc_index = 0;
	__s64 position;
	__u64 instr;

	if (l->position_kind == PYBPF_POS_LASTI)
		return (__s32)walk_frame_u32(w, at, l->frame_position);
	instr = walk_frame_u64(w, at, l->frame_position);
	if (l->frame_tlbc_index != PYBPF_NO_OFFSET)
		tlbc_index = (__s32)walk_frame_u32(w, at, l->frame_tlbc_index);
	position = tlbc_index ? walk_tlbc_position(w, l, code, instr, tlbc_index) : (__s64)(instr - code);
	return position < 0 || position > 0x7fffffff ? PYBPF_NO_POSITION : (__s32)position;
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

/* Why a chain goes no further. */
enum walk_stop {
	WALK_ROOT,  /* there is no previous frame */
	WALK_TORN,  /* it can't be read, or runs in a circle */
	WALK_WRONG, /* it is no chain of now */
};

/*
 * The chain ends here. Returns 1 when the walk does, too.
 *
 * A chain of 3.11+ ends at an entry frame. One that does not was met while the evaluation loop switched frames: the
 * compiler may have let it unlink a generator's frame before it stored the caller's (gcc does so in 3.12's
 * YIELD_VALUE), and the caller is then only in a register. So each register is tried: the frame that the loop works on
 * is the one whose chain comes to an entry frame and that the data stack has not popped. In 3.11 and 3.12 the outer
 * run's frame is tried last. A stack that is found in none of these ways is not told.
 */
static __always_inline int walk_end(struct walk *w, const struct pybpf_layout *l, enum walk_stop stop)
{
	int cframe = walk_has_cframe(l);

	if ((cframe ? !w->unproved : stop == WALK_ROOT && (w->at_entry || !walk_has_entries(l))) &&
	    (w->attempt != WALK_CANDIDATE || (w->stack.depth && !w->stack.flags)))
		return 1;
	if (w->attempt == WALK_FIRST) {
		/* What can't be read to its end is true as far as it goes. */
		if (stop == WALK_TORN && (!cframe || w->stack.depth >= WALK_PROOF_DEPTH))
			return 1;
		if (stop == WALK_ROOT && !w->steps && !cframe)
			return 1; /* no frame at all */
	}
	walk_clear_stack(w);
	if (w->attempt != WALK_OUTER && w->next_candidate < w->nr_candidates) {
		__u64 candidate = w->candidates[w->next_candidate++ & (WALK_CANDIDATES - 1)];

		/* No pointer: the next step comes back for another. */
		if (candidate & 7 || candidate < WALK_PAGE_MASK)
			candidate = 0;
		w->attempt = WALK_CANDIDATE;
		w->at_entry = 0;
		if (w->no_outer) {
			walk_enter_cframe(w, l, candidate > w->cframe && !walk_in_tstate(w, candidate) ? candidate : 0);
		} else {
			w->frame = candidate;
			w->unproved = 1;
		}
		return 0;
	}
	if (w->attempt != WALK_OUTER && w->outer_cframe && !w->no_outer) {
		w->attempt = WALK_OUTER;
		walk_enter_cframe(w, l, w->outer_cframe);
		return 0;
	}
	w->stack.flags = PYBPF_STACK_FAULT;
	return 1;
}

/* Looks at one frame. Returns 1 when the walk is done. */
static __always_inline int walk_step_frame(struct walk *w, const struct pybpf_layout *l)
{
	__u64 frame = w->frame, code;
	__u32 at, sig, flag;

	if (!frame)
		return walk_end(w, l, WALK_ROOT);
	if (frame == w->checkpoint) {
		w->stack.flags |= PYBPF_STACK_CYCLE;
		return walk_end(w, l, WALK_TORN);
	}
	if (w->steps == w->next_checkpoint) {
		w->checkpoint = frame;
		w->next_checkpoint *= 2;
	}
	if (++w->steps > PYBPF_MAX_WALK) {
		w->stack.flags |= PYBPF_STACK_NO_ROOT;
		return walk_end(w, l, WALK_TORN);
	}
	if (walk_fetch_frame(w, l, frame, &at)) {
		w->stack.flags |= PYBPF_STACK_FAULT;
		return walk_end(w, l, WALK_TORN);
	}
	w->frame = walk_frame_u64(w, at, l->frame_previous);
	if (walk_has_entries(l))
		w->at_entry = walk_is_entry(w, l, at);
	if (w->unproved) {
		/* A frame beyond the data stack's top has been popped; and the loop works on no entry frame. */
		if ((frame >= w->datastack_top && frame < w->datastack_limit) ||
		    (w->attempt == WALK_CANDIDATE && !w->no_outer && !w->stack.depth && walk_is_shim(w, l, at)))
			return walk_end(w, l, WALK_WRONG);
		if (walk_has_cframe(l) && w->at_entry) {
			if (w->frame != w->outer_frame)
				return walk_end(w, l, WALK_WRONG);
			w->unproved = 0;
		}
	}
	if (walk_is_shim(w, l, at))
		return 0;
	code = walk_frame_u64(w, at, l->frame_code) & ~(__u64)l->code_tag_mask;
	flag = walk_code(w, l, code, &sig);
	if (flag)
		w->stack.flags |= flag;
	else
		walk_push(w, code, sig, walk_position(w, l, code, at));
	return 0;
}

/* The caller has no more steps to give: what was found so far was found in no way that ends. */
static __always_inline void walk_give_up(struct walk *w)
{
	walk_clear_stack(w);
	w->stack.flags = PYBPF_STACK_FAULT;
}

/* Does one step. Returns 1 when the walk is done; result, depth, flags, hash and frames[] then hold its outcome. */
static __always_inline int walk_step(struct walk *w, const struct pybpf_layout *l)
{
	__u64 next = 0;

	if (w->phase == WALK_FRAME)
		return walk_step_frame(w, l);

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
