// SPDX-License-Identifier: Apache-2.0
/* The frames of a stack, root first, in a buffer that is reused from stack to stack. */
#ifndef OUTPUT_PATH_H
#define OUTPUT_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Zero it before the first use; the buffer is reused by each read, and freed by output_path_free(). */
struct output_path {
	uint32_t *frames;
	size_t count, room;
};

/* Reads the frames of a stack into *path. Returns 0 or -ENOMEM. */
int output_path_read(const struct profile *p, uint32_t stack, struct output_path *path);
void output_path_free(struct output_path *path);

#endif
