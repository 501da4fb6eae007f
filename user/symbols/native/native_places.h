// SPDX-License-Identifier: Apache-2.0
/*
 * Places in compiled code with their lines: a function, and those that are inlined into it there. Instructions at which
 * these are the same are one place.
 */
#ifndef SYMBOLS_NATIVE_PLACES_H
#define SYMBOLS_NATIVE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "native/lines.h"
#include "profile/profile.h"

struct native_places {
	struct intern list; /* struct native_place */
	bool full_paths;    /* sources are shown with their folders */
};

void native_places_init(struct native_places *p, bool full_paths);
void native_places_free(struct native_places *p);
/* The profile is another one now: frames have other numbers. */
void native_places_forget_profile(struct native_places *p);

/*
 * Adds what is at an address of a file: functions as of native_lines_find(), at most NATIVE_INLINED_MAX. Returns the
 * index of the place, or INTERN_NONE without memory.
 */
uint32_t native_places_add(struct native_places *p, uint32_t file, uint64_t address, const struct native_line *lines,
			   uint32_t count);
/* Returns the address at which the place was first met. */
uint64_t native_places_address(const struct native_places *p, uint32_t index);

/*
 * Puts the functions of a place on top of *stack, the outermost first. library: shown for a function whose source is
 * not known; mapping: that has it, or PROFILE_NONE. Returns 0 or -ENOMEM.
 */
int native_places_push(struct native_places *p, uint32_t index, const char *library, uint32_t mapping,
		       struct profile *profile, uint32_t *stack);

#endif
