// SPDX-License-Identifier: Apache-2.0
/*
 * A process that writes, names, merges and removes the files of a folder of epochs, so that the process that samples
 * needs no right to do so, and never waits for the disk, which a snapshot may freeze. It is handed epochs in files in
 * memory, and copies them to the disk. It ends when the other process does, after what it was handed.
 */
#ifndef ARCHIVE_EPOCH_KEEPER_H
#define ARCHIVE_EPOCH_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/retain.h"
#include "archive/store.h"
#include "base/error.h"
#include "child/child.h"

/* Most epochs that wait in memory: the next one has a place while one is written, or others are merged. */
#define ARCHIVE_KEEPER_WAITING_MAX 2

struct profile;

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
	unsigned waiting; /* epochs that were handed over and are not known to be written */
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
/*
 * Hands over an epoch, which is copied to memory, and does not wait until it is on the disk. Returns 0, or negative
 * errno: -EBUSY while ARCHIVE_KEEPER_WAITING_MAX of them wait, -EPIPE when the process has ended.
 */
int archive_keeper_write(struct archive_keeper *keeper, const struct archive_span *span, const struct profile *profile);
/* Changes the limits. Returns 0 or negative errno. */
int archive_keeper_limit(struct archive_keeper *keeper, const struct archive_limits *limits);
/*
 * Waits at most wait_s seconds until all epochs are written, and the process has ended. One that a disk holds up is
 * left to itself: it ends when the disk answers. Returns the epochs that were not written by then. May be called twice,
 * and on a zeroed struct.
 */
unsigned archive_keeper_stop(struct archive_keeper *keeper, double wait_s);

#endif
