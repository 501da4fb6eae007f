// SPDX-License-Identifier: Apache-2.0
/* Finds the functions of the program's own. */
#include "profile/application_frames.h"

#include <stdlib.h>
#include <string.h>

uint32_t *profile_nearest_own(const struct profile *p)
{
	uint32_t count = profile_stack_count(p), *own = malloc(count * sizeof(*own));
	enum profile_origin *best = malloc(count * sizeof(*best));

	if (!own || !best) {
		free(own);
		free(best);
		return NULL;
	}
	own[PROFILE_ROOT] = PROFILE_ROOT;
	best[PROFILE_ROOT] = PROFILE_ORIGINS;
	/* A parent has a smaller index than its children. */
	for (uint32_t s = 1; s < count; s++) {
		const struct profile_stack *stack = profile_stack_at(p, s);
		const struct profile_frame *frame = profile_frame_at(p, stack->frame);
		enum profile_origin below = best[stack->parent];
		enum profile_origin origin =
			frame->kind == PROFILE_PYTHON ? profile_origin_of(p, frame->file) : PROFILE_ORIGINS;

		best[s] = origin < below ? origin : below;
		if (best[s] == PROFILE_ORIGINS)
			own[s] = profile_waiter_of(p, s);
		else
			own[s] = origin <= below ? s : own[stack->parent];
	}
	free(best);
	return own;
}

bool profile_is_in(const struct profile_edit_texts *paths, const char *file)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i];
		size_t len = strlen(path);

		while (len > 1 && path[len - 1] == '/')
			len--;
		if (strncmp(file, path, len) == 0 && (file[len] == '\0' || file[len] == '/'))
			return true;
	}
	return false;
}
