// SPDX-License-Identifier: Apache-2.0
/* The stacks of a profile as a tree: what stands on each, and what it has of the samples. */
#ifndef PROFILE_TREE_H
#define PROFILE_TREE_H

#include <stdbool.h>

#include "profile.h"

/* All arrays have an element for each stack; the profile must not change while they are used. */
struct profile_tree {
	const struct profile *profile;
	uint32_t count;  /* of stacks, PROFILE_ROOT among them */
	uint64_t *self;  /* value of the samples of that very stack; 0 for PROFILE_ROOT, which has no frames */
	uint64_t *total; /* and of all that stand on it */
	uint32_t *order; /* stacks depth first: each directly before all that stand on it */
	uint32_t *end;   /* place in the order behind the last that stands on the stack that has this place */
};

/* Returns 0 or -ENOMEM; the tree is to be freed in both cases. */
int profile_tree_make(struct profile_tree *t, const struct profile *p);
void profile_tree_free(struct profile_tree *t);

/*
 * Each stack but PROFILE_ROOT has a key, keys[stack] < nr_keys. Sets outermost[stack] where none of the stacks that it
 * stands on has its key: the totals of such stacks count a sample once for each key, however often recursion repeats
 * it. Returns 0 or -ENOMEM.
 */
int profile_tree_outermost(const struct profile_tree *t, const uint32_t *keys, uint32_t nr_keys, bool *outermost);

#endif
