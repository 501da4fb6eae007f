// SPDX-License-Identifier: Apache-2.0
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include <stdio.h>

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
