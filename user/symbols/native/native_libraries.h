// SPDX-License-Identifier: Apache-2.0
/* The files that native frames are in, and where these are in a profile. */
#ifndef SYMBOLS_NATIVE_LIBRARIES_H
#define SYMBOLS_NATIVE_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intern.h"
#include "native/ask.h"
#include "profile/profile.h"

struct native_library {
	uint32_t number;  /* in frames */
	char *path;       /* as it was mapped */
	const char *name; /* in it, without its folders */
	bool is_no_file;  /* [vdso], and what was made at run time */
	bool is_made;     /* the latter */
	bool is_c_library;
	struct native_file about;
	/* By segment: the mapping in the profile, PROFILE_NONE before its first frame. */
	uint32_t mappings[NATIVE_SEGMENTS_MAX];
	bool is_used;  /* since they were forgotten last */
	bool is_met;   /* as native_frames_note_met() has found */
	unsigned idle; /* how often they were forgotten without that it was used in between */
};

struct native_libraries {
	struct intern items; /* struct native_library */
	uint32_t newest;     /* the number that was given last */
};

void native_libraries_init(struct native_libraries *l);
void native_libraries_free(struct native_libraries *l);
/* Returns the number of the library that is added, or 0 without memory. path: as it is mapped. */
uint32_t native_libraries_add(struct native_libraries *l, const char *path);
/*
 * The profile is another one now: mappings have other numbers. Removes the libraries that were not used twice in a row.
 */
void native_libraries_forget_profile(struct native_libraries *l);
/* Returns NULL for a number that none has. */
static inline struct native_library *native_library_at(const struct native_libraries *l, uint32_t number)
{
	uint32_t i = intern_find(&l->items, &number);

	return i == INTERN_NONE ? NULL : intern_item(&l->items, i);
}

void native_library_describe(struct native_library *library, const struct native_file *about);
/* Finds the mapping of the profile that has an address as linked. Returns 0, -ENOENT or -ENOMEM. */
int native_library_map(struct native_library *library, uint64_t address, struct profile *profile, uint32_t *mapping);

#endif
