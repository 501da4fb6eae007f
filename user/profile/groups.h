// SPDX-License-Identifier: Apache-2.0
/* The frames of a profile in groups, by what of them is to be the same: one function, one definition, one line. */
#ifndef PROFILE_GROUPS_H
#define PROFILE_GROUPS_H

#include "base/intern.h"
#include "profile/profile.h"

enum profile_group_by {
	PROFILE_BY_FUNCTION,   /* name and file */
	PROFILE_BY_DEFINITION, /* and the line where the function begins: two lambdas of a file are two */
	PROFILE_BY_LINE,       /* name, file, and the line that was executed */
};

struct profile_group {
	uint32_t name, file; /* strings */
	int32_t line;   /* first line of a definition, or the line; PROFILE_NO_LINE where unknown, and of functions */
	uint32_t frame; /* one of the group */
};

struct profile_groups {
	struct intern table; /* struct profile_group, in the order of first appearance */
	uint32_t *of_frame;  /* the group of each frame */
};

/* Returns 0 or -ENOMEM; the groups are to be freed in both cases. */
int profile_groups_make(struct profile_groups *g, const struct profile *p, enum profile_group_by by);
void profile_groups_free(struct profile_groups *g);

static inline const struct profile_group *profile_group_at(const struct profile_groups *g, uint32_t index)
{
	return intern_item(&g->table, index);
}

#endif
