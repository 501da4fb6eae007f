/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The bytecode instruction that the last frame of a sample executes. It is read at the sample, because CPython 3.11+
 * specializes instructions where they are.
 */
#ifndef PYBPF_OPCODE_BPF_H
#define PYBPF_OPCODE_BPF_H

#include "maps.bpf.h"

/* For 3.11 and 3.12, by opcode: code units of its inline cache, or PYBPF_CACHES_UNKNOWN. */
const volatile __u8 cfg_caches[PYBPF_CACHES_VERSIONS][256];

/* Most code units of an inline cache in 3.11 and 3.12 (LOAD_METHOD, LOAD_ATTR), and bytes of a code unit (3.6+). */
#define OPCODE_CACHES 10
#define OPCODE_UNIT   2
/* Code units of the longest bytecode that is gone through from its beginning. */
#define OPCODE_UNITS 2048
#define OPCODE_BYTES (OPCODE_UNITS * OPCODE_UNIT)
_Static_assert(OPCODE_BYTES <= COPY_MASK + 1, "the bytecode fits the room for copies");

/* Most EXTENDED_ARG before one instruction of 3.6+. */
#define OPCODE_EXTENDED_MOST 3

/*
 * To 3.10: the instruction at f_lasti. With EXTENDED_ARG f_lasti stays there while the instruction that it extends
 * runs.
 */
static __always_inline __u32 opcode_at_lasti(struct walk *w, const struct pybpf_layout *l)
{
	__u32 extended = l->extended_arg, unit = l->extended_arg_size;
	__s64 position = w->frames[0].position, size = 0;
	/* The opcode fills a word: of a word that a helper writes to, the verifier forgets all else, such as i. */
	__u64 bytecode = 0, opcode = 0;

	if (position < 0 || !l->code_bytecode ||
	    walk_read(w, &bytecode, sizeof(bytecode), w->frames[0].code + l->code_bytecode) ||
	    walk_read(w, &size, sizeof(size), bytecode + l->bytes_size))
		return PYBPF_OPCODE_UNKNOWN;
	if (l->line_kind == PYBPF_LINES_PEP626)
		position *= OPCODE_UNIT;
	for (int i = 0; i <= OPCODE_EXTENDED_MOST; i++) {
		if (position >= size || walk_read(w, &opcode, sizeof(__u8), bytecode + l->bytes_data + (__u64)position))
			return PYBPF_OPCODE_UNKNOWN;
		if (opcode != extended)
			return PYBPF_OPCODE(opcode);
		position += unit;
	}
	return PYBPF_OPCODE_UNKNOWN;
}

/*
 * 3.11 and 3.12: when a function is entered without leaving the evaluation loop, prev_instr of its caller is set to the
 * end of the call's inline cache (DISPATCH_INLINED in Python/ceval.c), and stays there until the caller's next
 * instruction. Returns whether that may be so: whether there is an instruction whose cache ends here. A cache of
 * another instruction may look like one.
 */
static __always_inline bool opcode_may_be_cache(const __u8 *before, __u32 row, __u64 offset)
{
	for (__u32 units = 1; units <= OPCODE_CACHES; units++) {
		__u8 opcode = before[(OPCODE_CACHES - units) * OPCODE_UNIT];

		if (offset >= (__u64)units * OPCODE_UNIT && cfg_caches[row & 1][opcode] == units)
			return true;
	}
	return false;
}
_Static_assert(PYBPF_CACHES_VERSIONS == 2, "the mask keeps the row inside the table");

/* Returns the opcode of the instruction that the code unit at that offset, in bytes, belongs to: as it or its cache. */
static __always_inline __u32 opcode_around(struct scratch *s, __u32 row, __u64 offset)
{
	__u32 end = (__u32)offset & (OPCODE_BYTES - 1), at = 0;

	if (offset >= OPCODE_BYTES || walk_read(&s->walk, s->copies, end + 1, s->walk.leaf_instr - end))
		return PYBPF_OPCODE_UNKNOWN;
	for (__u32 i = 0; i < OPCODE_UNITS; i++) {
		__u8 opcode = s->copies[at & (OPCODE_BYTES - 1)], caches = cfg_caches[row & 1][opcode];

		if (caches == PYBPF_CACHES_UNKNOWN)
			break;
		at += (1u + caches) * OPCODE_UNIT;
		if (at > end)
			return PYBPF_OPCODE(opcode);
	}
	return PYBPF_OPCODE_UNKNOWN;
}

/* 3.11+: the instruction at the frame's pointer, in the copy of the bytecode that the thread runs. */
static __always_inline __u32 opcode_at_pointer(struct scratch *s, const struct pybpf_layout *l)
{
	struct walk *w = &s->walk;
	__u8 window[(OPCODE_CACHES + 1) * OPCODE_UNIT];
	__s64 offset = (__s64)w->frames[0].position - l->code_adaptive;

	if (offset < 0 || offset & (OPCODE_UNIT - 1) ||
	    walk_read(w, window, sizeof(window), w->leaf_instr - OPCODE_CACHES * OPCODE_UNIT))
		return PYBPF_OPCODE_UNKNOWN;
	if (l->caches && opcode_may_be_cache(window, l->caches - 1u, (__u64)offset))
		return opcode_around(s, l->caches - 1u, (__u64)offset);
	return PYBPF_OPCODE(window[OPCODE_CACHES * OPCODE_UNIT]);
}

/*
 * Puts the opcode into the stack of the sample, whose walk has found frames. A global function, so that the verifier
 * checks it once.
 */
__noinline int take_opcode(void)
{
	struct scratch *s = scratch_get(PYBPF_CONTEXT_EVENT);
	const struct pybpf_layout *l;
	struct walk *w;

	if (!s)
		return 0;
	w = &s->walk;
	l = layout_get(s->layout);
	if (!l || w->frames[0].kind != PYBPF_FRAME_PYTHON || w->frames[0].position == PYBPF_NO_POSITION)
		w->stack.opcode = PYBPF_OPCODE_UNKNOWN;
	else if (l->position_kind == PYBPF_POS_LASTI)
		w->stack.opcode = opcode_at_lasti(w, l);
	else
		w->stack.opcode = opcode_at_pointer(s, l);
	return 0;
}

#endif
