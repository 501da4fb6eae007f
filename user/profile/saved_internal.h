// SPDX-License-Identifier: Apache-2.0
/* Declarations shared by the files that read a saved profile. */
#ifndef PROFILE_SAVED_INTERNAL_H
#define PROFILE_SAVED_INTERNAL_H

#include "base/error.h"
#include "profile/saved.h"

/* The destination of an error message, and the name of the file that it is about. */
struct saved_error {
	const char *file;
	struct error *error;
};

/* Each writes a sentence "FILE ..." into the error, and returns its negative errno. */
int saved_say(struct saved_error *error, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int saved_damaged(struct saved_error *error, const char *what);
int saved_too_large(struct saved_error *error);
int saved_no_memory(struct saved_error *error);

/* As profile_load_stream, for the unpacked bytes of a saved profile. */
int saved_load_bytes(const void *bytes, size_t size, struct profile **p, struct saved_error *error);

#endif
