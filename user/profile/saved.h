// SPDX-License-Identifier: Apache-2.0
/* Saved profiles, .pybpf: everything that a profile holds, to make any format of it later. saved.proto describes them.
 */
#ifndef PROFILE_SAVED_H
#define PROFILE_SAVED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "profile/profile.h"

/* The format that is written, and the newest one that is read. It grows when an older pybpf would misread what is new.
 */
#define PROFILE_SAVED_FORMAT 1
/* A file begins with this, the format as a decimal number, and a line feed. */
#define PROFILE_SAVED_MAGIC "pybpf profile "

/* Writes the profile. Returns 0 or negative errno; a failed write may also show in ferror(out). */
int profile_save(const struct profile *p, FILE *out);

/* Opens a file for profile_load_stream. Returns 0, or negative errno after putting one sentence that names it into
 * *error.
 */
int profile_open(const char *path, FILE **in, struct error *error);

/*
 * Reads a saved profile, of which nothing is trusted; name is what the sentence calls it. Returns 0 and *p, which the
 * caller frees, or negative errno after putting one sentence into *error: -EBADMSG for what is no saved profile or a
 * damaged one, -ENOTSUP for a newer one, -EFBIG for one that would take memory out of proportion to its size.
 */
int profile_load_stream(FILE *in, const char *name, struct profile **p, struct error *error);

#endif
