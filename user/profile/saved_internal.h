// SPDX-License-Identifier: Apache-2.0
/* What the parts of reading a saved profile share. */
#ifndef PROFILE_SAVED_INTERNAL_H
#define PROFILE_SAVED_INTERNAL_H

#include "base/error.h"
#include "profile/saved.h"

/* Where the sentence goes, and the file that it is about. */
struct saved_error {
	const char *file;
	struct error *error;
};

/* Each says "FILE ..." and returns its error. */
int saved_say(struct saved_error *error, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int saved_damaged(struct saved_error *error, const char *what);
int saved_too_large(struct saved_error *error);
int saved_no_memory(struct saved_error *error);

/* As profile_load_stream, of the bytes that a saved profile has compressed. */
int saved_load_bytes(const void *bytes, size_t size, struct profile **p, struct saved_error *error);

#endif
