// SPDX-License-Identifier: Apache-2.0
/* Reads the frames of a stack, root first, into an array. */
#include "output/formats/path.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

int output_path_read(const struct profile *p, uint32_t stack, struct output_path *path)
{
	size_t n = 0;

	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent)
		n++;
	if (array_reserve(&path->frames, &path->room, n, sizeof(*path->frames)))
		return -ENOMEM;
	path->count = n;
	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(p, s)->parent)
		path->frames[--n] = profile_stack_at(p, s)->frame;
	return 0;
}

void output_path_free(struct output_path *path)
{
	free(path->frames);
	*path = (struct output_path){0};
}
