// SPDX-License-Identifier: Apache-2.0
/*
 * A folder of epochs that one agent writes to. A file gets its name when its content is on the disk, so that a crash,
 * of pybpf or of the machine, leaves whole files only. A merged file replaces its parts from the moment it has its
 * name: readers skip its parts (name.h), so that no sample is counted twice.
 */
#ifndef ARCHIVE_STORE_H
#define ARCHIVE_STORE_H

#include <stdio.h>

#include "archive/list.h"
#include "archive/retain.h"
#include "base/error.h"

struct profile;

struct archive_store {
	int folder; /* -1: not open */
	struct archive_list list;
	bool is_shut; /* the folder let no file come or go when it was last tried, which was said */
};

/* A file that has no final name yet. */
struct archive_file {
	int fd; /* -1: none */
	char name[32];
};

/*
 * Opens the folder, which is made with mode 0700 if it does not exist, and locks it until all processes that have it
 * open have ended. Refuses one that others own or may write to. Returns 0, or negative errno with one sentence in
 * *error; archive_store_close() in both cases.
 */
int archive_store_open(struct archive_store *store, const char *path, struct error *error);
/* Removes what an agent that was killed has left, and reads which epochs there are. Returns as archive_store_open(). */
int archive_store_begin(struct archive_store *store, struct error *error);
/* May be called twice. */
void archive_store_close(struct archive_store *store);

/* Makes a file for a new epoch. Returns 0 or negative errno. */
int archive_store_make(const struct archive_store *store, struct archive_file *file);
/*
 * Waits until the content of the file is on the disk, and gives it the name of the span; an epoch (last 0) gets its
 * number here. Closes the file in all cases; on failure it is removed. Returns 0 or negative errno.
 */
int archive_store_commit(struct archive_store *store, struct archive_file *file, const struct archive_span *span);
/* Writes a profile to an open file, which stays open. Returns 0 or negative errno. */
int archive_store_copy(const struct profile *profile, int fd);
/* Removes the file. May be called twice. */
void archive_store_discard(const struct archive_store *store, struct archive_file *file);

/*
 * Does what archive_retain() says next. Returns 1 if it did something, 0 if there is nothing to do, or negative errno
 * with one sentence in *error, which is empty, with code 0, where it would be the same again as the whole folder, such
 * as one of a disk that is read-only, lets no file go: that is tried again by the next call. An epoch that cannot be
 * read or added to others stays as it is, and those around it are merged by the next calls, and so are those around one
 * that cannot be removed; limits->merge_from is raised where epochs cannot be merged for want of memory or room.
 */
int archive_store_retain(struct archive_store *store, struct archive_limits *limits, uint64_t now_ms,
			 struct error *error);

/* Returns the bytes of all epochs. */
uint64_t archive_store_size(const struct archive_store *store);

#endif
