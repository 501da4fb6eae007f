// SPDX-License-Identifier: Apache-2.0
/*
 * The call tree of a profile: samples share the nodes of the frames that they have in common from the root on. Below
 * the frames are the profile's roots (container, parents, process, thread), as in every other output.
 */
#ifndef PROFILE_TREE_H
#define PROFILE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/* The index for "no node". */
#define PROFILE_TREE_NONE UINT32_MAX

enum profile_tree_kind {
	PROFILE_TREE_ALL,       /* node 0, the root of the tree */
	PROFILE_TREE_CONTAINER, /* what: a string; 0: the host, not a container */
	PROFILE_TREE_PARENT,    /* what: a parent (profile/parents.h), which is not a process of the profile */
	PROFILE_TREE_PROCESS,   /* what: a process; it may have started the next one */
	PROFILE_TREE_THREAD,    /* what: a thread */
	PROFILE_TREE_FRAME,     /* what: a frame, the first of those that were merged */
};

struct profile_tree_node {
	uint32_t parent; /* has a smaller index; PROFILE_TREE_NONE for node 0 */
	uint32_t kind;   /* enum profile_tree_kind */
	uint32_t what;
	uint32_t depth;                     /* 0 for node 0 */
	uint32_t first_child, next_sibling; /* or PROFILE_TREE_NONE; siblings with the largest total first */
	uint64_t self, total;               /* value of samples that end at this node, and of all that include it */
};

struct profile_tree {
	struct profile_tree_node *nodes; /* node 0 always exists */
	uint32_t count;
	uint32_t depth; /* of the deepest node */
};

/*
 * Builds the tree of the samples that have frames. Frames with the same kind, name and file are merged; with by_line,
 * the line must be the same, too. Time and memory grow with the number of distinct stacks, not with their depth.
 * Returns 0 or -ENOMEM.
 */
int profile_tree_build(const struct profile *p, bool by_line, struct profile_tree *tree);
/* May be called on a zeroed tree. */
void profile_tree_free(struct profile_tree *tree);

#endif
