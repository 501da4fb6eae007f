// SPDX-License-Identifier: Apache-2.0
/* A profile as text or file. A new format is one file with one function, and a row in output.c. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdio.h>

#include "profile.h"

struct output_format {
	const char *name;
	const char *suffix; /* of file names that ask for it, with the dot */
	const char *help;
	/* Writes the profile. Returns 0 or negative errno; a failed write may also show in ferror(out). */
	int (*write)(const struct profile *p, FILE *out);
};

/* The format of that name, or NULL. */
const struct output_format *output_by_name(const char *name);
/* The format that a file's suffix asks for, or NULL for an unknown suffix; a path without suffix is folded. */
const struct output_format *output_by_path(const char *path);
/* All formats, ended by one without a name. */
const struct output_format *output_formats(void);

int output_folded(const struct profile *p, FILE *out);
int output_text(const struct profile *p, FILE *out);

/*
 * Writes a name so that it stays one name on one line: backslash as \\, `;` as \x3b, control characters as \xNN.
 * The rest is UTF-8 as it is.
 */
void output_escaped(const char *text, FILE *out);
/* Writes "name (PID)", "name (PID, N inside)" for another PID in its own namespace, or "name", escaped. */
void output_process(const struct profile *p, uint32_t process, FILE *out);
/* Writes "qualname (file.py:LINE)", escaped. */
void output_frame(const struct profile *p, uint32_t frame, FILE *out);

/*
 * A file that appears under its name only when it is whole: written beside it, then renamed.
 */
struct output_file {
	FILE *stream;
	char *path, *temporary;
};

/* Opens the temporary file beside path. Returns 0 or negative errno. */
int output_file_open(struct output_file *file, const char *path);
/* Makes it appear. Returns 0 or negative errno; on failure nothing stays behind. */
int output_file_commit(struct output_file *file);
/* Removes what was not committed; may be called at any time, twice, and on a zeroed struct. */
void output_file_discard(struct output_file *file);

#endif
