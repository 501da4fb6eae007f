// SPDX-License-Identifier: Apache-2.0
/* What the parts of reading a saved profile share. */
#ifndef PROFILE_SAVED_INTERNAL_H
#define PROFILE_SAVED_INTERNAL_H

#include "profile/saved.h"

/* Where the sentence goes, and the file that it is about. */
struct saved_why {
	const char *file;
	char *text;
	size_t size;
};

/* Each says "FILE ..." and returns its error. */
int saved_say(struct saved_why *why, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int saved_damaged(struct saved_why *why, const char *what);
int saved_too_large(struct saved_why *why);
int saved_no_memory(struct saved_why *why);

/* profile_load_bytes. */
int saved_load_bytes(const void *bytes, size_t size, struct profile **p, struct saved_why *why);

#endif
