// SPDX-License-Identifier: Apache-2.0
/* What each stack of a profile has of the samples, with all that stand on it. */
#ifndef PROFILE_TOTALS_H
#define PROFILE_TOTALS_H

#include <stdbool.h>

#include "profile/profile.h"

/* All arrays have an element for each stack; the profile must not change while they are used. */
struct profile_totals {
	const struct profile *profile;
	uint32_t count;  /* of stacks, PROFILE_ROOT among them */
	uint64_t *self;  /* value of the samples of that very stack; 0 for PROFILE_ROOT, which has no frames */
	uint64_t *total; /* and of all that stand on it */
	uint32_t *order; /* stacks depth first: each directly before all that stand on it */
	uint32_t *end;   /* place in the order behind the last that stands on the stack that has this place */
};

/* Returns 0 or -ENOMEM; the totals are to be freed in both cases. */
int profile_totals_make(struct profile_totals *t, const struct profile *p);
void profile_totals_free(struct profile_totals *t);

/*
 * Each stack but PROFILE_ROOT has a key, keys[stack] < nr_keys. Sets outermost[stack] where none of the stacks that it
 * stands on has its key: the totals of such stacks count a sample once for each key, however often recursion repeats
 * it. Returns 0 or -ENOMEM.
 */
int profile_totals_outermost(const struct profile_totals *t, const uint32_t *keys, uint32_t nr_keys, bool *outermost);

#endif
