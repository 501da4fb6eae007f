// SPDX-License-Identifier: Apache-2.0
/* Groups the frames of a profile by function, definition, or line or expression. */
#include "profile/groups.h"

#include <errno.h>
#include <stdlib.h>

static int32_t line_of(const struct profile_frame *frame, enum profile_group_by by)
{
	if (by == PROFILE_BY_LINE)
		return frame->line;
	return by == PROFILE_BY_DEFINITION && frame->first_line > 0 ? frame->first_line : PROFILE_NO_LINE;
}

int profile_groups_make(struct profile_groups *g, const struct profile *p, enum profile_group_by by)
{
	uint32_t count = profile_frame_count(p);

	intern_init(&g->table, sizeof(struct profile_group), offsetof(struct profile_group, frame));
	g->of_frame = calloc(count ? count : 1, sizeof(*g->of_frame));
	if (!g->of_frame)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);
		struct profile_group group = {
			.name = frame->name,
			.file = frame->file,
			.line = line_of(frame, by),
			.frame = i,
		};
		bool fresh;

		if (by == PROFILE_BY_LINE) {
			group.end_line = frame->end_line;
			group.column = frame->column;
			group.end_column = frame->end_column;
		}
		g->of_frame[i] = intern_add(&g->table, &group, &fresh);
		if (g->of_frame[i] == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

void profile_groups_free(struct profile_groups *g)
{
	intern_free(&g->table);
	free(g->of_frame);
}
