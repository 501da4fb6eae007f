// SPDX-License-Identifier: Apache-2.0
/* Shared by the parts of the comparison: merge.c merges the profiles, times.c estimates bursts, diff.c judges. */
#ifndef COMPARE_DIFF_INTERNAL_H
#define COMPARE_DIFF_INTERNAL_H

#include "compare/diff.h"

/* Maps indices of one profile to those of the merged one. */
struct diff_map {
	const struct profile *p;
	uint32_t *frames, *stacks, *processes;
	uint32_t *samples; /* PROFILE_NONE for those without frames */
};

/* Makes diff->merged and diff->before, and fills both maps, whose profiles are set. Returns 0 or -ENOMEM. */
int diff_merge(struct diff *diff, struct diff_map maps[DIFF_SIDES]);
void diff_map_free(struct diff_map *map);

/*
 * Raises the design effects of functions and stacks to those estimated from the times of one profile's samples: the
 * greater one of both profiles is used for both. outermost: by stack of the merged profile, whether no stack below it
 * has the same function. Returns 0 or -ENOMEM.
 */
int diff_take_times(struct diff *diff, const struct diff_map *map, const bool *outermost);

#endif
