// SPDX-License-Identifier: Apache-2.0
/*
 * Names of the profiles in a folder of epochs:
 *
 *	20261127T050200.123Z-61250ms-00000042.pybpf               an epoch
 *	20261127T050000.004Z-3600120ms-00000040-00000099.pybpf    one that was merged of epochs
 *
 * They begin with the UTC time at which the epoch began, so that they sort by it, followed by its length and its
 * number; a merged one has the numbers of its first and its last epoch. Numbers grow by one from epoch to epoch,
 * whatever the clock does: a file whose numbers are within those of a merged one that began in the same hour is a part
 * of it.
 */
#ifndef ARCHIVE_NAME_H
#define ARCHIVE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a name, with its NUL. */
#define ARCHIVE_NAME_MAX 96
/* Names of files that are being written begin with this: they are of no use to anybody when their writer has ended. */
#define ARCHIVE_UNFINISHED ".pybpf-"

struct archive_span {
	uint64_t begin_ms, length_ms; /* begin: since 1970 */
	uint64_t first, last;         /* numbers of the epochs in it; an epoch: the same */
};

/* Writes the name of a span. */
void archive_name_write(const struct archive_span *span, char name[ARCHIVE_NAME_MAX]);
/* Reads a name. Returns whether it is one that archive_name_write() writes. */
bool archive_name_read(const char *name, struct archive_span *span);

#endif
