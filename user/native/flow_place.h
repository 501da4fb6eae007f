// SPDX-License-Identifier: Apache-2.0
/* Where a function of x86-64 has its frame while its instructions are followed. */
#ifndef NATIVE_FLOW_PLACE_H
#define NATIVE_FLOW_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "native/x86.h"

/* Bytes that the canonical frame address (CFA; DWARF 5, 6.4) is above a place. */
struct flow_place {
	int32_t depth;   /* of the stack pointer; FLOW_UNKNOWN */
	int32_t frame;   /* of the frame pointer; FLOW_UNKNOWN: it is anything */
	int32_t saved;   /* of where the caller's frame pointer lies; FLOW_UNKNOWN: in its register only */
	uint8_t changed; /* the frame pointer is not the caller's any more */
	uint8_t is_root; /* there is no caller */
	/*
	 * Where neither tells it: the stack pointer was kept this far above itself, and what lies there is `kept` below
	 * the CFA; FLOW_UNKNOWN.
	 */
	int16_t keeper;
	int32_t kept;
};

#define FLOW_UNKNOWN (-1)

/* At a function's start: the return address is on the stack. */
#define FLOW_PLACE_BEGIN ((struct flow_place){8, FLOW_UNKNOWN, FLOW_UNKNOWN, 0, 0, FLOW_UNKNOWN, FLOW_UNKNOWN})

enum flow_step {
	FLOW_GOES_ON,
	FLOW_IS_LOST, /* what the instruction does is not known */
	FLOW_IS_NONE, /* no function of a compiler's does that: something is taken for what it is not */
};

/* Changes the place as an instruction does; what jumps do is the caller's. */
enum flow_step flow_step(struct flow_place *p, const struct x86_instruction *i);

/* Returns whether it is that of a function that could return. */
bool flow_is_at_begin(const struct flow_place *p);

/* Returns the rule of pybpf_native_row that finds the caller. */
uint32_t flow_rule(const struct flow_place *p);

#endif
