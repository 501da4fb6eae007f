// SPDX-License-Identifier: Apache-2.0
/*
 * Walks a path name by name, by descriptors: another user may move its folders and replace its links meanwhile. The
 * caller's rules decide which of them are followed, and what the end of the path may be.
 */
#ifndef BASE_PATH_WALK_H
#define BASE_PATH_WALK_H

#include <limits.h>
#include <sys/stat.h>

struct path_walk {
	const struct path_walk_rules *rules;
	void *context;           /* of the rules */
	int folder;              /* O_PATH, of the folder that the walk has reached; the caller closes it */
	char rest[2 * PATH_MAX]; /* the part of the path that is still to be walked */
	unsigned links;          /* that were followed by their text */
};

/* Each returns 0 to go on, 1 where the walk ends, or negative errno. Descriptors are those of O_PATH. */
struct path_walk_rules {
	/* The path goes up: "..". */
	int (*up)(struct path_walk *w);
	/* The path goes down into a folder; takes the descriptor over, and hands it to path_walk_move(). */
	int (*enter)(struct path_walk *w, const char *name, int folder);
	/* The path has a link, with the status; the rest is empty if it is the last name. The walk closes the link. */
	int (*link)(struct path_walk *w, const char *name, int link, const struct stat *status);
	/*
	 * The path ends. name "." is the folder itself. file, which is taken over: -1 if there is no such file; then
	 * the rest may be slashes.
	 */
	int (*arrive)(struct path_walk *w, const char *name, int file);
};

/* Walks a path from w->folder on. The caller begins in the root directory if the path does. Returns as the rules do. */
int path_walk(struct path_walk *w, const char *path);

/* Goes to a folder, whose descriptor is taken over; below 0: errno says why there is none. Returns 0 or negative errno.
 */
int path_walk_move(struct path_walk *w, int folder);

/* Puts the text of a link before the rest. Returns 0, 1 if the text begins at the root directory, or negative errno. */
int path_walk_follow(struct path_walk *w, int link);

#endif
