// SPDX-License-Identifier: Apache-2.0
/* Resolves an output path. Other users may change its folders meanwhile: it is walked name by name, by descriptors. */
#ifndef OUTPUT_PLACE_H
#define OUTPUT_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/error.h"
#include "rights/caller.h"

struct output_place {
	int descriptor; /* of an open pipe, terminal or file, if the path names one: /dev/stdout, /dev/fd/N; else -1 */
	int folder;     /* O_PATH */
	bool planted;   /* a stranger created it, or a folder above it, where others than the owner may create files */
	struct stat folder_status;
	char name[NAME_MAX + 1]; /* in the folder */
	int there;               /* O_PATH, of the existing file of that name; -1: there is no such file */
	struct stat status;      /* of the existing file */
};

/*
 * Resolves path into *place. Follows links, also as the last name, only if root, the user that pybpf runs as or the
 * caller made them; so the file of that name is not a link. Returns 0, or negative errno with a sentence in *error, and
 * then nothing is left open.
 */
int output_place_find(const char *path, const struct caller *caller, struct output_place *place, struct error *error);

/*
 * Opens a folder, whose path is walked likewise, to which nobody but root or the user that pybpf runs as may write;
 * makes it, with mode 0700, if it does not exist. Returns a descriptor, or negative errno with a part of a sentence in
 * *error.
 */
int output_place_open_folder(const char *path, struct error *error);

/*
 * Returns whether another user created the file, in a folder in which others than its owner may create files, or below
 * a folder that such a user created.
 */
bool output_place_is_planted(const struct output_place *place, const struct caller *caller);

void output_place_close(struct output_place *place);

#endif
