// SPDX-License-Identifier: Apache-2.0
/* What the files share that implement native_frames.h: native_instructions.c has names, native_join.c whole stacks. */
#ifndef SYMBOLS_NATIVE_FRAMES_INTERNAL_H
#define SYMBOLS_NATIVE_FRAMES_INTERNAL_H

#include "base/intern.h"
#include "symbols/native/native_frames.h"
#include "symbols/native/native_libraries.h"
#include "symbols/native/native_places.h"
#include "symbols/native/native_roles.h"

enum native_naming {
	NAMING_WANTED,
	NAMING_WANTS_LINES,
	NAMING_PUT_OFF, /* either of both is */
	NAMING_DONE,
};

/* An instruction, and what a frame with it is called. */
struct native_instruction {
	uint64_t frame; /* PYBPF_NATIVE_FRAME without marks */
	char *name;     /* NULL: not known */
	uint64_t start; /* first address of the function, as linked; 0: not known */
	uint32_t in_profile;
	uint32_t shown_pc; /* that stands for it, where it has no name */
	uint32_t place;    /* in places, with its lines; INTERN_NONE: none */
	uint8_t naming;    /* enum native_naming */
	uint8_t put_off;   /* what is, while naming is NAMING_PUT_OFF */
	bool is_plumbing;
	bool is_used; /* since the profile was forgotten last */
	uint8_t role; /* enum native_role */
};

struct native_frames {
	struct native_frames_options options;
	struct native_places places;
	struct native_libraries libraries;
	struct intern instructions;
	uint32_t nr_wanted[NAMING_DONE]; /* by enum native_naming */
	native_frames_on_gap *on_gap;
	void *on_gap_arg;
};

/* native_instructions.c */

/* Returns the file that the frame is in, or NULL. */
struct native_library *native_frames_library(const struct native_frames *t, uint64_t frame);
uint64_t native_frames_without_marks(uint64_t frame);
/* Returns the frame's instruction, which is added if need be, or NULL without memory. */
struct native_instruction *native_frames_find(struct native_frames *t, uint64_t frame);
/* The profile is another one now. Removes the instructions of which no frame was asked for since the one before. */
void native_instructions_forget_profile(struct native_frames *t);

#endif
