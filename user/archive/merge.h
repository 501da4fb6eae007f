// SPDX-License-Identifier: Apache-2.0
/* Adds up the profiles of epochs. */
#ifndef ARCHIVE_MERGE_H
#define ARCHIVE_MERGE_H

#include "archive/list.h"
#include "base/error.h"
#include "profile/edit.h"

struct profile;

/*
 * Adds the profiles of count epochs in a folder, a descriptor, to a profile, through the edit (NULL: everything). Parts
 * of merged ones are not among them. Returns 0, or negative errno with one sentence in *error.
 */
int archive_load(int folder, const struct archive_epoch *epochs, size_t count, const struct profile_edit *edit,
		 struct profile *to, struct error *error);
/* Returns the span of the epochs from the first to the last. */
struct archive_span archive_span_of(const struct archive_epoch *first, const struct archive_epoch *last);

#endif
