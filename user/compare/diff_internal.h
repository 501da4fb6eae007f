// SPDX-License-Identifier: Apache-2.0
/* What the parts of the comparison share: diff_make.c judges what the others have added up. */
#ifndef COMPARE_DIFF_INTERNAL_H
#define COMPARE_DIFF_INTERNAL_H

#include "compare/diff.h"

/* From the indexes of one profile to those of the merged one. */
struct diff_map {
	const struct profile *p;
	uint32_t *frames, *stacks, *processes;
	uint32_t *samples; /* PROFILE_NONE for those without frames */
};

/* Makes diff->merged and diff->before, and both maps, which have their profile. Returns 0 or -ENOMEM. */
int diff_merge(struct diff *diff, struct diff_map maps[DIFF_SIDES]);
void diff_map_free(struct diff_map *map);

/*
 * Widens the design effects of functions and stacks to what the times of one profile's samples show of bursts: the
 * greater one of both profiles holds for both. outermost: of each stack of the merged profile, whether none that it
 * stands on has its function. Returns 0 or -ENOMEM.
 */
int diff_take_times(struct diff *diff, const struct diff_map *map, const bool *outermost);

#endif
