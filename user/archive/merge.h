// SPDX-License-Identifier: Apache-2.0
/* Adds up the profiles of epochs. */
#ifndef ARCHIVE_MERGE_H
#define ARCHIVE_MERGE_H

#include "archive/list.h"
#include "base/error.h"
struct profile;

/*
 * Adds up the profiles of epochs of a folder, a descriptor, from the first to the last. Marks the one that cannot be
 * read, or not be added to those before it, so that none of another attempt's is added to it (is_apart). Returns the
 * sum, which the caller frees, or NULL with one sentence in *error.
 */
struct profile *archive_load(int folder, struct archive_epoch *first, struct archive_epoch *last, struct error *error);
/* Returns the span of the epochs from the first to the last. */
struct archive_span archive_span_of(const struct archive_epoch *first, const struct archive_epoch *last);

#endif
