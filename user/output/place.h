// SPDX-License-Identifier: Apache-2.0
/* Where a path leads to. Other users may change what is on the way, so it is walked step by step, by descriptors. */
#ifndef OUTPUT_PLACE_H
#define OUTPUT_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"
#include "rights/caller.h"

struct output_place {
	int descriptor; /* of an open pipe, terminal or file that the path names: /dev/stdout, /dev/fd/N; else -1 */
	int folder;     /* O_PATH */
	bool planted;   /* a stranger put it, or one on the way to it, where not only the owner puts things */
	struct stat folder_status;
	char name[NAME_MAX + 1]; /* in the folder */
	int there;               /* O_PATH, of what has the name; -1: nothing has */
	struct stat status;      /* of it */
};

/*
 * Follows links only where root, the user that pybpf runs as or the caller made them; the last one as well, so what has
 * the name is no link. Returns 0, or negative errno after writing into *error, and then nothing is open.
 */
int output_place_find(const char *path, const struct caller *caller, struct output_place *place, struct error *error);

/* True for what another user put there, in a folder where not only its owner puts things, or below such a user's. */
bool output_place_is_planted(const struct output_place *place, const struct caller *caller);

void output_place_close(struct output_place *place);

#endif
