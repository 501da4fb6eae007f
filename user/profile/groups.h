// SPDX-License-Identifier: Apache-2.0
/* Groups the frames of a profile by function, by definition, or by line or expression. */
#ifndef PROFILE_GROUPS_H
#define PROFILE_GROUPS_H

#include "base/intern.h"
#include "profile/profile.h"

enum profile_group_by {
	PROFILE_BY_FUNCTION,   /* by name and file */
	PROFILE_BY_DEFINITION, /* also by the function's first line: two lambdas of a file are two groups */
	PROFILE_BY_LINE,       /* by name, file, and the line, or the expression, that was executed */
};

struct profile_group {
	uint32_t name, file; /* strings */
	int32_t line; /* first line of a definition, or the line; PROFILE_NO_LINE where unknown, and of functions */
	int32_t end_line, column, end_column; /* with PROFILE_BY_LINE: as in struct profile_frame */
	uint32_t frame;                       /* a frame of the group */
};

struct profile_groups {
	struct intern table; /* struct profile_group, in the order of first appearance */
	uint32_t *of_frame;  /* the group of each frame */
};

/* Makes the groups. Returns 0 or -ENOMEM; the groups are to be freed in both cases. */
int profile_groups_make(struct profile_groups *g, const struct profile *p, enum profile_group_by by);
void profile_groups_free(struct profile_groups *g);

static inline const struct profile_group *profile_group_at(const struct profile_groups *g, uint32_t index)
{
	return intern_item(&g->table, index);
}

#endif
