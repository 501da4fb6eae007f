// SPDX-License-Identifier: Apache-2.0
/*
 * A process that makes, names, merges and removes the files of a folder of epochs, so that the process that samples
 * needs no right to do so, and never waits for it. It hands out open files without a final name, and names them on
 * request. It ends when the other process does; what was not named then is removed.
 */
#ifndef ARCHIVE_KEEPER_H
#define ARCHIVE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "archive/retain.h"
#include "archive/store.h"
#include "base/error.h"
#include "child/child.h"

/* Files that are handed out ahead: while one is named, and others are merged, the next one is there. */
#define ARCHIVE_KEEPER_FILES 2

/* What the process has done so far. */
struct archive_keeper_counts {
	uint64_t written;       /* epochs */
	uint64_t written_bytes; /* of them */
	uint64_t failed;        /* epochs that could not be written */
	uint64_t merged;        /* times that epochs were merged */
	uint64_t removed;       /* files */
	uint64_t kept, size;    /* files and bytes that are in the folder now */
	double cpu_s;           /* CPU time that the process took */
};

struct archive_keeper {
	struct child process;
	FILE *files[ARCHIVE_KEEPER_FILES]; /* in the order in which they are to be written */
	size_t nr_files;
	unsigned waiting; /* epochs whose naming is not known to be done */
	struct archive_keeper_counts counts;
};

/*
 * Starts the process, and hands it the open store, which is closed here. Returns 0, or negative errno with one sentence
 * in *error.
 */
int archive_keeper_start(struct archive_keeper *keeper, struct archive_store *store,
			 const struct archive_limits *limits, struct error *error);
/*
 * Takes what the process has answered, and logs what it failed to do. wait_ms: how long to wait for an answer, 0: not
 * at all. Returns 0, or -EPIPE when the process has ended.
 */
int archive_keeper_poll(struct archive_keeper *keeper, int wait_ms);
/* Returns the file for the next epoch, or NULL while the process has others to name. It stays the keeper's. */
FILE *archive_keeper_file(const struct archive_keeper *keeper);
/*
 * Closes that file and has it named; after err, of writing it, it is removed. Returns 0, or negative errno after which
 * it is removed, too.
 */
int archive_keeper_commit(struct archive_keeper *keeper, const struct archive_span *span, int err);
/* Changes the limits. Returns 0 or negative errno. */
int archive_keeper_limit(struct archive_keeper *keeper, const struct archive_limits *limits);
/* Waits until all epochs have their names, and for the process to end. May be called twice, and on a zeroed struct. */
void archive_keeper_stop(struct archive_keeper *keeper);

#endif
