// SPDX-License-Identifier: Apache-2.0
#include "symbols/objects/py_frame.h"

#include "cpython/facts.h"

/* A _PyStackRef of 3.14+ has tags in its lowest bits; with both set it is a number and not a pointer. */
#define STACKREF_TAGS 3

uint32_t py_frame_locals(const struct pybpf_layout *layout)
{
	const struct cpython_frame *frame = cpython_facts(layout)->frame;

	switch (frame->kind) {
	case CPYTHON_LOCALS_OF_OBJECT:
		return frame->locals + cpython_header_size(layout);
	case CPYTHON_LOCALS_OF_FRAME:
		return frame->locals;
	default:
		return (layout->frame_owner + 8u) & ~7u;
	}
}

uint64_t py_frame_object(const struct pybpf_layout *layout, uint64_t word)
{
	if (!layout->code_tag_mask)
		return word;
	return (word & STACKREF_TAGS) == STACKREF_TAGS ? 0 : word & ~(uint64_t)STACKREF_TAGS;
}
