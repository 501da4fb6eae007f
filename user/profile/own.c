// SPDX-License-Identifier: Apache-2.0
/* Finds the functions of the program's own. */
#include "profile/own.h"

#include <string.h>

uint32_t profile_nearest_own(const struct profile *p, uint32_t stack)
{
	enum profile_origin best = PROFILE_ORIGINS;
	uint32_t found = profile_waiter_of(p, stack);

	for (uint32_t s = found; s != PROFILE_ROOT && best != PROFILE_OWN; s = profile_stack_at(p, s)->parent) {
		const struct profile_frame *frame = profile_frame_at(p, profile_stack_at(p, s)->frame);

		if (frame->kind != PROFILE_PYTHON || profile_origin_of(p, frame->file) >= best)
			continue;
		best = profile_origin_of(p, frame->file);
		found = s;
	}
	return found;
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
