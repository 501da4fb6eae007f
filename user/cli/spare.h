// SPDX-License-Identifier: Apache-2.0
/* Where the profile of a run goes for which the disk has no room. */
#ifndef CLI_SPARE_H
#define CLI_SPARE_H

#include <limits.h>
#include <stdbool.h>

#include "output/file/file.h"

/* Filled with zeros, it stands for no file. */
struct cli_spare {
	struct output_file file;
	char path[PATH_MAX];
};

/*
 * Opens a file without a name in a temporary folder ($TMPDIR, /tmp, /var/tmp, /dev/shm) that is on another file system
 * than `file` and has room now; under sudo it belongs to the caller if `file` does. If none is, *spare stays as it is.
 * path: the file's, from which the other gets its name.
 */
void cli_spare_open(struct cli_spare *spare, const struct output_file *file, const char *path);

/* Returns whether the error says that the disk has no room, or the user no more of it: ENOSPC or EDQUOT. */
bool cli_spare_is_for(int err);

/*
 * If the stream's file can be written again and somebody sits at the terminal, says that there is no room, waits for
 * Enter, and empties the file. Returns whether to write again; false: nobody is there, or there was Ctrl-C or Ctrl-D.
 */
bool cli_spare_wait_for_room(FILE *stream, const char *path, int err);

#endif
