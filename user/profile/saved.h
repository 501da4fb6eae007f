// SPDX-License-Identifier: Apache-2.0
/*
 * Saved profiles, .pybpf: they hold all of a profile, so that any format can be made of it later. saved.proto describes
 * them.
 */
#ifndef PROFILE_SAVED_H
#define PROFILE_SAVED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "profile/profile.h"

/*
 * The format number that is written, and the newest one that is read. It grows if an older pybpf would misread the new
 * contents.
 */
#define PROFILE_SAVED_FORMAT 1
/* A file begins with this, the format as a decimal number, and a line feed. */
#define PROFILE_SAVED_MAGIC "pybpf profile "

/* Writes the profile. Returns 0 or negative errno; a failed write may also show in ferror(out). */
int profile_save(const struct profile *p, FILE *out);

/* Opens a file for profile_load_stream. Returns 0, or negative errno with one sentence, which names it, in *error. */
int profile_open(const char *path, FILE **in, struct error *error);

/*
 * Reads a saved profile; nothing in it is trusted. name is the file's name for error messages. Returns 0 and *p, which
 * the caller frees, or negative errno with one sentence in *error: -EBADMSG if the file is not a saved profile or is
 * damaged, -ENOTSUP if its format is newer, -EFBIG if it would take memory out of proportion to its size.
 */
int profile_load_stream(FILE *in, const char *name, struct profile **p, struct error *error);

#endif
