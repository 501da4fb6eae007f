// SPDX-License-Identifier: Apache-2.0
/* Decides which epochs of a folder are merged, and which are removed. */
#ifndef ARCHIVE_RETAIN_H
#define ARCHIVE_RETAIN_H

#include "archive/list.h"

/* Epochs are merged, one for each hour, after this share of the time for which they are kept. */
#define ARCHIVE_MERGE_SHARE 7
/* What is merged at once has at most this size in bytes, compressed: a limit of memory. */
#define ARCHIVE_MERGE_BYTES ((uint64_t)4 << 20)
/* Likewise at most this number of files, which are all read in one turn: epochs may be as short as a second. */
#define ARCHIVE_MERGE_FILES 120

struct archive_limits {
	uint64_t keep_ms;    /* epochs that ended longer ago are removed */
	uint64_t keep_size;  /* bytes of all of them together */
	uint64_t merge_from; /* epochs with smaller numbers are not merged: there was no memory or room for it */
};

enum archive_step_kind {
	ARCHIVE_NOTHING, /* the folder is within its limits */
	ARCHIVE_REMOVE,  /* one epoch */
	ARCHIVE_MERGE,   /* some that follow each other */
};

struct archive_step {
	enum archive_step_kind kind;
	size_t first, last; /* indices of the list */
};

/*
 * Returns what to do next: first parts of merged epochs are removed; then what is too old; epochs of one hour are
 * merged when they are older than a part of keep_ms, or when all are too large together; at last the oldest is removed
 * until they are not. The newest epoch stays, and so does what cannot be removed, whose size counts. now_ms: since
 * 1970.
 */
struct archive_step archive_retain(const struct archive_list *list, const struct archive_limits *limits,
				   uint64_t now_ms);

#endif
