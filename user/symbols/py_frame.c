// SPDX-License-Identifier: Apache-2.0
/* Frames of CPython 2.7 and 3.6 to 3.15. */
#include "symbols/py_frame.h"

/* A _PyStackRef of 3.14+ has tags in its lowest bits; with both set it is a number and not a pointer. */
#define STACKREF_TAGS 3

static bool is_since(const struct pybpf_layout *layout, int minor)
{
	return layout->major == 3 && layout->minor >= minor;
}

uint32_t py_frame_locals(const struct pybpf_layout *l)
{
	/* PyFrameObject.f_localsplus with an object's header of 16 bytes (Include/frameobject.h). */
	static const uint16_t by_minor[] = {[6] = 376, [7] = 360, [8] = 360, [9] = 360, [10] = 352};
	static const uint16_t of_2_7 = 376;

	/* _PyInterpreterFrame: localsplus follows the owner, and bytes that fill up (3.13+: debug offsets agree). */
	if (l->major == 3 && l->minor == 11)
		return 72;
	if (is_since(l, 12))
		return (l->frame_owner + 8u) & ~7u;
	if (l->major == 3 && l->minor < 6)
		return 0;
	return (l->major == 2 ? of_2_7 : by_minor[l->minor]) + l->code_type - 8u;
}

uint64_t py_frame_object(const struct pybpf_layout *layout, uint64_t word)
{
	if (!is_since(layout, 14))
		return word;
	return (word & STACKREF_TAGS) == STACKREF_TAGS ? 0 : word & ~(uint64_t)STACKREF_TAGS;
}
