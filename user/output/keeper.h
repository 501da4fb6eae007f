// SPDX-License-Identifier: Apache-2.0
/*
 * A process that puts written files in their places, so that the one which writes them needs no right to make, rename
 * or remove a file. It can do this below the files' own folders only, and removes what was not committed when the
 * other process ends, however that comes.
 */
#ifndef OUTPUT_KEEPER_H
#define OUTPUT_KEEPER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "output/file.h"

#define OUTPUT_KEEPER_FILES 2

/* Zeroed: none. */
struct output_keeper {
	pid_t pid; /* 0: none runs */
	int fd;
};

/*
 * Takes over open files, into which nothing was written yet (one that is not open, or has no place to be put into, is
 * left as it is). Returns 0, or negative errno with a sentence in *error.
 */
int output_keeper_start(struct output_keeper *keeper, struct output_file *const files[], size_t count,
			struct error *error);
/*
 * Closes the written file, the index-th of those that it was started with, and makes it appear. Returns 0 or negative
 * errno; on failure nothing stays behind.
 */
int output_keeper_commit(struct output_keeper *keeper, struct output_file *file, size_t index);
/* Removes what was not committed. May be called twice, and on a zeroed struct. */
void output_keeper_stop(struct output_keeper *keeper);

#endif
