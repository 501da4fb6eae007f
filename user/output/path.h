// SPDX-License-Identifier: Apache-2.0
/* The frames of a stack, root first, for what writes stack after stack. */
#ifndef OUTPUT_PATH_H
#define OUTPUT_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Zeroed at first; room is used again, and output_path_free()d in the end. */
struct output_path {
	uint32_t *frames;
	size_t count, room;
};

/* Returns 0 or -ENOMEM. */
int output_path_read(const struct profile *p, uint32_t stack, struct output_path *path);
void output_path_free(struct output_path *path);

#endif
