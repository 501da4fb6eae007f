// SPDX-License-Identifier: Apache-2.0
/*
 * A file that appears under its name only when it is whole: it has no name before (O_TMPFILE), so that nothing is left
 * of a run that is killed. Where the file system cannot do that, it has a temporary name beside its place.
 *
 * A new file has mode 0600. It belongs to who called sudo where its folder does. One that replaces another has owner,
 * group, mode and ACL of that; other names (hard links) of the old file keep the old content.
 */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/error.h"

struct output_file {
	FILE *stream;
	char name[NAME_MAX + 1]; /* in the folder; empty for what is written as it is: a terminal, /dev/null, a pipe */
	char temporary[32];      /* likewise, and empty while no file has it */
	int folder, inode;       /* descriptors, of the file as well */
	bool entrusted;          /* another process makes it appear, or removes it */
	struct stat folder_status, old, status; /* old: of the file to be replaced, zeroed when the file is new */
};

/*
 * All that needs rights happens here: opening, owner, group, mode. Returns 0, or negative errno after saying in *error
 * what is wrong with the path, and then nothing is open. Never waits.
 */
int output_file_open(struct output_file *file, const char *path, struct error *error);

/* Would one of the two replace the other? */
bool output_file_same(const struct output_file *a, const struct output_file *b);

/*
 * What output_file_commit() and output_file_discard() need beyond the rights of the process's user and groups:
 * CAP_DAC_OVERRIDE for a folder that the user cannot write to or to link another user's file (proc(5),
 * protected_hardlinks), and CAP_FOWNER to rename another user's file in a sticky folder. Their system calls are linkat
 * of /proc/self/fd/N, renameat and unlinkat.
 */
bool output_file_needs_override(const struct output_file *file);
bool output_file_needs_fowner(const struct output_file *file);

/* Leaves all that to another process, which has its copy of this; only writing is left. */
void output_file_entrust(struct output_file *file);

/*
 * Waits until the disk has the content, and gives the file its name, in the place of an old one; an entrusted one is
 * closed, and its other process gives it the name.
 * Returns 0 or negative errno; on failure nothing stays behind, and an old file stays as it was.
 */
int output_file_commit(struct output_file *file);
/* Removes what was not committed; may be called at any time, twice, and on a zeroed struct. */
void output_file_discard(struct output_file *file);

#endif
