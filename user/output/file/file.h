// SPDX-License-Identifier: Apache-2.0
/*
 * An output file that gets its name only when it is complete: until then it has no name (O_TMPFILE), so that a killed
 * run leaves no file behind. If the file system does not support that, it has a temporary name in the same folder.
 *
 * A new file has mode 0600. It belongs to the user who called sudo if its folder does. A file that replaces another one
 * keeps that one's owner, group, mode and ACL; other names (hard links) of the old file keep the old content.
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
	char name[NAME_MAX + 1]; /* in the folder; empty if written in place: a terminal, /dev/null, a pipe */
	char temporary[32];      /* the temporary name in the folder; empty if the file has none */
	int folder, inode;       /* descriptors of the folder and of the file */
	bool entrusted;          /* another process gives the file its name, or removes it */
	struct stat folder_status, old, status; /* old: of the file to be replaced, zeroed when the file is new */
};

/*
 * Opens the file, and sets its owner, group and mode: all operations that need rights, except giving it its name. Never
 * blocks. Returns 0, or negative errno with the reason in *error; then nothing is left open.
 */
int output_file_open(struct output_file *file, const char *path, struct error *error);

/*
 * Gives a new file, not yet written, to the user who called sudo if the other file, which it stands in for, is that
 * user's: also in a folder that is not. Returns 0 or negative errno.
 */
int output_file_give_as(struct output_file *file, const struct output_file *other);

/* Returns whether one of the two would replace the other. */
bool output_file_same(const struct output_file *a, const struct output_file *b);

/*
 * Return whether output_file_commit() and output_file_discard() need more than the rights of the process's user and
 * groups: CAP_DAC_OVERRIDE for a folder that the user cannot write to, or to link another user's file (proc(5),
 * protected_hardlinks), and CAP_FOWNER to rename another user's file in a sticky folder. Their system calls are linkat
 * of /proc/self/fd/N, renameat and unlinkat.
 */
bool output_file_needs_override(const struct output_file *file);
bool output_file_needs_fowner(const struct output_file *file);

/* Most descriptors of a file. */
#define OUTPUT_FILE_DESCRIPTORS 3
/* Writes the descriptors of a file that gets a name later to out. Returns their number, 0 for any other file. */
size_t output_file_descriptors(const struct output_file *file, int out[OUTPUT_FILE_DESCRIPTORS]);

/* Leaves the naming or removal of the file to another process, which has a copy of *file; the caller only writes. */
void output_file_entrust(struct output_file *file);

/*
 * Waits until the content is on the disk, and gives the file its name, replacing an old file. An entrusted file is only
 * closed: the other process gives it its name.
 * Returns 0 or negative errno; on failure the new file is removed, and an old one is left unchanged.
 */
int output_file_commit(struct output_file *file);
/* Removes a file that was not committed. May be called at any time, twice, and on a zeroed struct. */
void output_file_discard(struct output_file *file);

#endif
