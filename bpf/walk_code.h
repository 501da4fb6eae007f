/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Of one code object: what tells it from another, and where in it a frame is. */
#ifndef PYBPF_WALK_CODE_H
#define PYBPF_WALK_CODE_H

#include "walk_state.h"

/* Bytes of a string object, from its length on, that tell it from another: length, state and some 32 bytes of text. */
#define WALK_STRING_BYTES 64

/* Of what a string says: its length and its first characters, and not its hash, which may be set later. */
static __always_inline __u64 walk_string_hash(struct walk *w, const struct pybpf_layout *l, __u64 string)
{
	__u64 addr = string + l->str_length, room = WALK_PAGE_MASK + 1 - (addr & WALK_PAGE_MASK), hash = 0;
	__u64 text[WALK_STRING_BYTES / 8] = {};

	/* Beyond the page may be nothing. */
	if (room > WALK_STRING_BYTES)
		room = WALK_STRING_BYTES;
	if (walk_read(w, text, (__u32)room, addr)) {
		w->steps += WALK_FAULT_STEPS;
		return hash;
	}
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

static __always_inline __u64 walk_path_hash(struct walk *w, const struct pybpf_layout *l, __u64 string)
{
	struct walk_path *path = &w->paths[(string >> 5) & (WALK_PATHS - 1)];

	if (path->string != string || path->walk != w->number) {
		path->hash = walk_string_hash(w, l, string);
		path->string = string;
		path->walk = w->number;
	}
	return path->hash;
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
		hash = walk_mix(walk_mix(hash, walk_string_hash(w, l, name)), walk_path_hash(w, l, file));
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
	    index < 0 || index >= count || walk_read(w, &base, sizeof(base), array + 8 + (__u64)index * 8) || !base) {
		w->steps += WALK_FAULT_STEPS;
		return -1;
	}
	return (__s64)(instr - base + l->code_adaptive);
}

/* Returns the code object's signature in *sig. Returns 0, or the flag that says why there is none. */
static __always_inline __u32 walk_code(struct walk *w, const struct pybpf_layout *l, __u64 code, __u32 *sig)
{
	struct walk_memo *memo = &w->memo[(code >> 5) & (WALK_MEMO - 1)];

	if (memo->code == code && memo->walk == w->number) {
		*sig = memo->sig;
		return 0;
	}
	if (walk_window(w, code, l->code_window, PYBPF_CODE_WINDOW)) {
		w->steps += WALK_FAULT_STEPS;
		return PYBPF_STACK_FAULT;
	}
	if (w->code_type && walk_u64(w, l->code_type) != w->code_type)
		return PYBPF_STACK_NOT_CODE;
	*sig = walk_code_signature(w, l);
	memo->code = code;
	memo->sig = *sig;
	memo->walk = w->number;
	return 0;
}

/* From a frame object of Nuitka's (1.9 to 4.3) to the frame inside it: 72 to 104 bytes in 3.11 and 3.12. */
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

/* Where the frame is in its code object: see struct pybpf_frame. */
static __always_inline __s32 walk_position(struct walk *w, const struct pybpf_layout *l, __u64 code, __u64 frame,
					   __u32 at)
{
	__s32 tlbc_index = 0;
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
	if (l->frame_tlbc_index != PYBPF_NO_OFFSET)
		tlbc_index = (__s32)walk_frame_u32(w, at, l->frame_tlbc_index);
	position = tlbc_index ? walk_tlbc_position(w, l, code, instr, tlbc_index) : (__s64)(instr - code);
	return position < 0 || position > 0x7fffffff ? PYBPF_NO_POSITION : (__s32)position;
}

#endif
