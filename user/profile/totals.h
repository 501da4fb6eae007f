// SPDX-License-Identifier: Apache-2.0
/* The self and total values of the stacks of a profile. */
#ifndef PROFILE_TOTALS_H
#define PROFILE_TOTALS_H

#include <stdbool.h>

#include "profile/profile.h"

/* All arrays have an element per stack. The profile must not change while they are used. */
struct profile_totals {
	const struct profile *profile;
	uint32_t count;  /* number of stacks, PROFILE_ROOT included */
	uint64_t *self;  /* value of the samples of that stack itself; 0 for PROFILE_ROOT, which has no frames */
	uint64_t *total; /* self, and that of all its descendants */
	uint32_t *order; /* stacks depth first: each directly before its descendants */
	uint32_t *end;   /* by place in the order: the place behind the last descendant of the stack there */
};

/* Computes the totals. Returns 0 or -ENOMEM; the totals are to be freed in both cases. */
int profile_totals_make(struct profile_totals *t, const struct profile *p);
void profile_totals_free(struct profile_totals *t);

/*
 * Each stack but PROFILE_ROOT has a key, keys[stack] < nr_keys. Sets outermost[stack] if none of its ancestors has its
 * key: the totals of such stacks count a sample once per key, even if recursion repeats the key. Returns 0 or -ENOMEM.
 */
int profile_totals_outermost(const struct profile_totals *t, const uint32_t *keys, uint32_t nr_keys, bool *outermost);

/* Returns what of the profile's total is time of suspended tasks, and of no thread. */
uint64_t profile_suspended(const struct profile *p);

#endif
