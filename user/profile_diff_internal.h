// SPDX-License-Identifier: Apache-2.0
/* What the parts of the comparison share: profile_diff.c judges what the others have added up. */
#ifndef PROFILE_DIFF_INTERNAL_H
#define PROFILE_DIFF_INTERNAL_H

#include "profile_diff.h"

/* From the indexes of one profile to those of the merged one. */
struct profile_diff_map {
	const struct profile *p;
	uint32_t *frames, *stacks, *processes;
	uint32_t *samples; /* PROFILE_NONE for those without frames */
};

/* Makes diff->merged and diff->before, and both maps, which have their profile. Returns 0 or -ENOMEM. */
int profile_diff_merge(struct profile_diff *diff, struct profile_diff_map maps[PROFILE_DIFF_SIDES]);
void profile_diff_map_free(struct profile_diff_map *map);

/* Says which functions of a stack have been met already. */
struct profile_diff_seen {
	size_t *stamps; /* of frames: the last stack that each was met in */
	size_t stamp;   /* of this stack, from 1 up */
};

static inline bool profile_diff_first_sight(struct profile_diff_seen *seen, uint32_t frame)
{
	bool first = seen->stamps[frame] != seen->stamp;

	seen->stamps[frame] = seen->stamp;
	return first;
}

/*
 * Widens the design effects of functions and stacks to what the times of one profile's samples show of bursts: the
 * greater one of both profiles holds for both. Returns 0 or -ENOMEM.
 */
int profile_diff_take_times(struct profile_diff *diff, const struct profile_diff_map *map,
			    struct profile_diff_seen *seen);

#endif
