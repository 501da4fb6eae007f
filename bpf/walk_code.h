/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* One code object: its signature, which tells it from another at its address, and a frame's position in it. */
#ifndef PYBPF_WALK_CODE_H
#define PYBPF_WALK_CODE_H

#include "walk_text.h"

/*
 * A static code object (deep-frozen modules, 3.11 and 3.12): it is never freed, so its address alone tells which it is.
 * Their reference count begins at 999,999,999 (3.11, Tools/scripts/deepfreeze.py) or is immortal (PEP 683); no other
 * object has half as many references. Nobody reads their line tables, which may therefore not be in memory.
 */
#define WALK_STATIC_REFERENCES (1u << 29)

static __always_inline int walk_code_is_static(const struct walk *w, const struct pybpf_layout *l)
{
	return !l->free_threaded && walk_u32(w, l->code_type - sizeof(__u64)) >= WALK_STATIC_REFERENCES;
}

static __always_inline struct walk_path *walk_path_of(struct walk *w, __u64 string)
{
	return &w->paths[(string >> 5) & (WALK_PATHS - 1)];
}

/*
 * Begins the signature of the code object in the buffer: a number that differs between code objects that live at one
 * address one after the other. The addresses of its parts are included, but those are reused, too. co_version (3.12+)
 * is not reused while the interpreter lives, unless the counter behind it has run out (0). Each interpreter has its own
 * counter (interp->func_state), and a new interpreter can take the address of an ended one, so co_version is used in
 * the main interpreter only. Elsewhere all that is printed is included: name, path and line table, whole. No cheaper
 * check proves that this is the code object of an earlier sample, except walk_trust_codes; within a walk, during which
 * its frame keeps it alive, the memo does. Returns 1 when its texts are hashed, 0 when walk_texts_more is to be called
 * before walk_code_end.
 */
static __always_inline int walk_code_begin(struct walk *w, const struct pybpf_layout *l)
{
	__u64 name = walk_u64(w, l->code_qualname != PYBPF_NO_OFFSET ? l->code_qualname : l->code_name);
	__u64 file = walk_u64(w, l->code_filename), lines = walk_u64(w, l->code_linetable);
	__u32 version = l->code_version != PYBPF_NO_OFFSET ? walk_u32(w, l->code_version) : 0;
	__u64 hash = walk_mix(walk_mix(walk_u64(w, l->code_name), file), lines);
	const struct walk_path *path = walk_path_of(w, file);

	w->code_hash = walk_mix(walk_mix(hash, walk_u32(w, l->code_firstlineno)), version);
	w->new_path = 0;
	walk_texts_clear(w);
	w->with_texts = (!version || w->next_interp) && !walk_code_is_static(w, l);
	if (!w->with_texts)
		return 1;
	walk_text_string(w, l, WALK_TEXT_NAME, name);
	walk_text_lines(w, l, lines);
	if (path->string == file && path->number == w->number) {
		w->texts[WALK_TEXT_PATH].hash = path->hash;
	} else {
		walk_text_string(w, l, WALK_TEXT_PATH, file);
		w->new_path = file;
	}
	return walk_texts_done(w);
}

/*
 * Begins the walk of a thread state: finds out since when the memo's entries for code objects of its interpreter are
 * true.
 *
 * A frame can have another code object at a known address only after the known one was freed and the other one made.
 * 3.13 gives each new one the next number of func_state.next_version (init_code), and 3.14+ raises
 * _code_object_generation before it frees one (code_dealloc). Both only grow, and are read before the frames: while the
 * number is the same, the code object at a frame's address is the same. next_version is 0 when its numbers are used up.
 * (3.12 has the field as well, but counts in a variable that a stripped build does not show.) A code object belongs to
 * one interpreter (PEP 684). Only the main interpreter is trusted: it lies in _PyRuntime, where no other one can be; a
 * new interpreter at the address of an ended one counts from the beginning.
 */
WALK_ONCE int walk_trust_codes(struct walk *w, const struct pybpf_layout *l)
{
	struct walk_guard *guard;
	int err, is_known;

	if (!w || !l)
		return 0;
	guard = &w->guards[walk_mix(w->proc_id, w->tstate_interp) & (WALK_GUARDS - 1)];
	is_known = w->proc_id && guard->proc_id == w->proc_id && guard->interp == w->tstate_interp;
	w->epoch = ++w->number;
	w->next_interp = 0;
	w->guard_count = 0;
	if (l->code_version == PYBPF_NO_OFFSET)
		return 0;
	if (!is_known && walk_read(w, &w->next_interp, sizeof(w->next_interp), w->tstate_interp + l->interp_next))
		w->next_interp = WALK_SOME_INTERPRETER;
	if (w->next_interp || !w->proc_id || !l->interp_code_guard)
		return 0;
	/* Each size on its own: verifiers before 6.8 do not see the bounds of one that was read and checked. */
	if (l->code_guard_size == sizeof(__u64))
		err = walk_read(w, &w->guard_count, sizeof(__u64), w->tstate_interp + l->interp_code_guard);
	else
		err = walk_read(w, &w->guard_count, sizeof(__u32), w->tstate_interp + l->interp_code_guard);
	if (err || (!w->guard_count && l->code_guard_size != sizeof(__u64)))
		return 0;
	if (is_known && guard->count == w->guard_count) {
		w->epoch = guard->epoch;
		return 0;
	}
	guard->proc_id = w->proc_id;
	guard->interp = w->tstate_interp;
	guard->count = w->guard_count;
	guard->epoch = w->epoch;
	return 0;
}

static __always_inline struct walk_memo *walk_memo_of(struct walk *w, __u64 code)
{
	/* Fibonacci hashing (Knuth, 6.4): the highest bits depend on all. */
	return &w->memo[(code * 0x9e3779b97f4a7c15ULL) >> (64 - WALK_MEMO_BITS)];
}

/* Returns whether the memo's entry holds the code object's signature. */
static __always_inline int walk_is_known(const struct walk *w, const struct walk_memo *memo, __u64 code)
{
	return memo->code == code && memo->epoch == w->epoch;
}

/* The signature of the code object, which other frames of this walk may have as well. */
static __always_inline __u32 walk_code_end(struct walk *w, __u64 code)
{
	struct walk_memo *memo = walk_memo_of(w, code);
	__u64 hash = w->code_hash;

	hash = walk_mix(hash, w->texts[WALK_TEXT_NAME].hash);
	hash = walk_mix(hash, w->texts[WALK_TEXT_PATH].hash);
	hash = walk_mix(hash, w->texts[WALK_TEXT_LINES].hash);
	if (w->new_path) {
		struct walk_path *path = walk_path_of(w, w->new_path);

		path->string = w->new_path;
		path->hash = w->texts[WALK_TEXT_PATH].hash;
		path->number = w->number;
	}
	memo->code = code;
	memo->sig = ((__u32)(hash ^ (hash >> 32)) & ~PYBPF_SIG_TEXTS) | (w->with_texts ? PYBPF_SIG_TEXTS : 0);
	memo->epoch = w->epoch;
	return memo->sig;
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
	    index < 0 || index >= count || walk_read(w, &base, sizeof(base), array + 8 + (__u64)index * 8) || !base) {
		w->steps += WALK_FAULT_STEPS;
		return -1;
	}
	return (__s64)(instr - base + l->code_adaptive);
}

/* Not a flag: the further result of walk_code. */
#define WALK_CODE_GOES_ON (1u << 31)

/*
 * Returns the code object's signature in *sig. Returns 0, or the flag that says why there is none; or WALK_CODE_GOES_ON
 * when there is more of its texts than one step reads.
 */
static __always_inline __u32 walk_code(struct walk *w, const struct pybpf_layout *l, __u64 code, __u32 *sig)
{
	const struct walk_memo *memo = walk_memo_of(w, code);

	if (walk_is_known(w, memo, code)) {
		*sig = memo->sig;
		return 0;
	}
	if (walk_window(w, code, l->code_window, PYBPF_CODE_WINDOW)) {
		w->steps += WALK_FAULT_STEPS;
		return PYBPF_STACK_FAULT;
	}
	if (w->code_type && walk_u64(w, l->code_type) != w->code_type)
		return PYBPF_STACK_NOT_CODE;
	if (!walk_code_begin(w, l))
		return WALK_CODE_GOES_ON;
	*sig = walk_code_end(w, code);
	return 0;
}

/* Bytes from a frame object of Nuitka's (1.9 to 4.3) to the frame inside it: 72 to 104 in 3.11 and 3.12. */
#define WALK_INSIDE_OBJECT 104

/*
 * Code that was compiled to C (Nuitka) pushes frames as well, but no instruction runs in them. Their f_lineno is that
 * of the last call, and stays while operators, attributes and loops are at work, even in frames that those call.
 * To 3.10 f_lasti stays at -1, and f_trace is None where CPython's is NULL. In 3.11 and 3.12 the frame lies inside its
 * frame object, as CPython's do only when they have ended. The evaluation loop of 3.13+ runs functions only, and these
 * have none (nor has the trampoline below an inlined __init__, but that is FRAME_OWNED_BY_THREAD, 0).
 */
static __always_inline int walk_is_compiled(const struct walk *w, const struct pybpf_layout *l, __u64 frame, __u32 at)
{
	__u64 mark;

	if (l->frame_mark == PYBPF_NO_OFFSET)
		return 0;
	mark = walk_frame_u64(w, at, l->frame_mark);
	if (l->position_kind == PYBPF_POS_LASTI)
		return mark && (__s32)walk_frame_u32(w, at, l->frame_position) == -1;
	if (l->cframe_frame != PYBPF_NO_OFFSET)
		return frame - mark <= WALK_INSIDE_OBJECT;
	return !(mark & ~(__u64)l->code_tag_mask) && walk_frame_u8(w, at, l->frame_owner);
}

/* Returns the index of the copy of the bytecode that the frame at `at` runs; 0 is the code object's own. */
static __always_inline __s32 walk_tlbc_index(const struct walk *w, const struct pybpf_layout *l, __u32 at)
{
	return l->frame_tlbc_index != PYBPF_NO_OFFSET ? (__s32)walk_frame_u32(w, at, l->frame_tlbc_index) : 0;
}

/* Returns the frame's position in its code object: see struct pybpf_frame. */
static __always_inline __s32 walk_position(struct walk *w, const struct pybpf_layout *l, __u64 code, __u64 frame,
					   __u32 at, __s32 tlbc_index)
{
	__s64 position;
	__u64 instr;

	if (walk_is_compiled(w, l, frame, at)) {
		w->compiled++;
		return PYBPF_NO_POSITION;
	}
	if (w->in_jit && !w->stack.depth)
		return PYBPF_NO_POSITION;
	if (l->position_kind == PYBPF_POS_LASTI)
		return (__s32)walk_frame_u32(w, at, l->frame_position);
	instr = walk_frame_u64(w, at, l->frame_position);
	if (WALK_OPCODES && !w->stack.depth)
		w->leaf_instr = instr;
	position = tlbc_index ? walk_tlbc_position(w, l, code, instr, tlbc_index) : (__s64)(instr - code);
	return position < 0 || position > 0x7fffffff ? PYBPF_NO_POSITION : (__s32)position;
}

#endif
