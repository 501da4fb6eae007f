// SPDX-License-Identifier: Apache-2.0
/* What the stack pointer and the frame pointer are at an instruction, seen from another one before it. */
#ifndef NATIVE_AHEAD_PLACE_H
#define NATIVE_AHEAD_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "native/x86.h"

/* The stack pointer, or the frame pointer, at the start of the search, plus a number of bytes. */
enum ahead_base {
	AHEAD_NOTHING, /* anything else */
	AHEAD_SP,
	AHEAD_BP,
};

struct ahead_value {
	enum ahead_base base;
	int32_t offset;
};

/* The frame pointer. */
struct ahead_frame {
	struct ahead_value value;
	bool is_loaded; /* it is what lay at value when the search began */
};

struct ahead_place {
	struct ahead_value sp;
	struct ahead_frame bp;
	struct ahead_value written; /* below it on the stack lies what was stored since the start */
	struct ahead_value kept_at; /* where the frame pointer was stored since; NOTHING: nowhere */
	struct ahead_frame kept;    /* what it was then */
};

#define AHEAD_PLACE_BEGIN                                                                                              \
	{                                                                                                              \
		.sp = {AHEAD_SP, 0}, .bp = {{AHEAD_BP, 0}, false}, .written = { AHEAD_SP, 0 }                          \
	}

/* Goes behind an instruction that is no jump and no call. Returns false when nothing is known any more. */
bool ahead_step(struct ahead_place *p, const struct x86_instruction *i);

/*
 * Returns the rule of an instruction at `now`, which has the same caller as the return at `end`: NONE without one that
 * both places tell.
 */
uint32_t ahead_rule(const struct ahead_place *now, const struct ahead_place *end);

#endif
