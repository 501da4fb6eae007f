// SPDX-License-Identifier: Apache-2.0
/*
 * A process that gives written files their names, so that the process that writes them needs no right to create, rename
 * or remove files. It can do so only in the files' own folders. When the other process ends, for whatever reason, it
 * removes the files that were not committed.
 */
#ifndef OUTPUT_COMMITTER_H
#define OUTPUT_COMMITTER_H

#include <stddef.h>

#include "base/error.h"
#include "child/child.h"
#include "output/file/file.h"

#define OUTPUT_COMMITTER_FILES 9

/* Zeroed: no committer. */
struct output_committer {
	struct child process;
};

/*
 * Starts the committer, and hands it the open files, to which nothing was written yet. Files that are not open, or are
 * written in place, are left to the caller. Returns 0, or negative errno with a sentence in *error.
 */
int output_committer_start(struct output_committer *committer, struct output_file *const files[], size_t count,
			   struct error *error);
/*
 * Closes the written file, the index-th of those that the committer was started with, and gives it its name. Returns 0
 * or negative errno; on failure no file is left behind.
 */
int output_committer_commit(struct output_committer *committer, struct output_file *file, size_t index);
/* Removes the files that were not committed, and waits for the process. May be called twice, and on a zeroed struct. */
void output_committer_stop(struct output_committer *committer);

#endif
