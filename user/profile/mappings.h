// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of programs and libraries that functions of compiled code are in, by which readers of a profile find the
 * symbols of a function later, and elsewhere.
 */
#ifndef PROFILE_MAPPINGS_H
#define PROFILE_MAPPINGS_H

#include <stdint.h>

#include "base/intern.h"
#include "profile/profile.h"

/*
 * An executable segment of a file, as if the file was mapped where it is linked: processes that map it elsewhere share
 * it, and addresses are those that its symbols have.
 */
struct profile_mapping {
	uint32_t file;     /* string: without folders */
	uint32_t build_id; /* string: hexadecimal digits; 0 (the empty string): it has none */
	uint64_t start;    /* address of a page */
	uint64_t limit;    /* behind the last page */
	uint64_t offset;   /* of start in the file */
	uint32_t path;     /* string: where it was mapped first; not a part of what tells two apart; 0: not known */
	uint32_t pad;
};

struct profile_mapping_info {
	const char *file, *build_id, *path;
	uint64_t start, limit, offset;
};

/* Adds one, whose texts are copied into the profile. Returns its index, or PROFILE_NONE without memory. */
uint32_t profile_add_mapping(struct profile *p, const struct profile_mapping_info *info);
/* Adds the mapping of another profile's frame, if it has one. Returns its index, or PROFILE_NONE: none, or no memory.
 */
uint32_t profile_copy_mapping(struct profile *p, const struct profile *from, const struct profile_frame *frame);

static inline const struct profile_mapping *profile_mapping_at(const struct profile *p, uint32_t index)
{
	return (const struct profile_mapping *)intern_item(profile_get_mappings(p), index);
}
static inline uint32_t profile_mapping_count(const struct profile *p)
{
	return profile_get_mappings(p)->count;
}

#endif
