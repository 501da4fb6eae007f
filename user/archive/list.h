// SPDX-License-Identifier: Apache-2.0
/* The epochs in a folder. */
#ifndef ARCHIVE_LIST_H
#define ARCHIVE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/name.h"

struct archive_epoch {
	struct archive_span span;
	uint64_t size; /* bytes */
	bool is_part;  /* a merged file contains it: readers skip it, and it is to be removed */
	bool is_stuck; /* its file could not be removed, and is left alone */
	bool is_apart; /* it cannot be added to the one before it, as one of both cannot be read or is of another kind
			*/
};

/* Hours since 1970 at which an epoch began. */
static inline uint64_t archive_hour_of(const struct archive_epoch *epoch)
{
	return epoch->span.begin_ms / 3600000;
}

struct archive_list {
	struct archive_epoch *epochs; /* by their numbers; a merged one is before its parts */
	size_t count, room;
};

/*
 * Reads the folder, a descriptor that can be read. Names of other files are ignored. Returns 0 or negative errno;
 * archive_list_free() in both cases.
 */
int archive_list_read(struct archive_list *list, int folder);
/* Adds one. archive_list_sort() is due then. Returns 0 or -ENOMEM. */
int archive_list_add(struct archive_list *list, const struct archive_epoch *epoch);
/* Sorts the epochs, and finds out which are parts of others. */
void archive_list_sort(struct archive_list *list);
/* Returns the number that the next epoch gets. */
uint64_t archive_list_next_number(const struct archive_list *list);
/* May be called twice, and on a zeroed struct. */
void archive_list_free(struct archive_list *list);

#endif
