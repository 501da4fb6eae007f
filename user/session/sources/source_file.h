// SPDX-License-Identifier: Apache-2.0
/*
 * Source files of other processes, read with the rights of the thread that claims to have run them: the path in a code
 * object is chosen by that process and not trusted, and pybpf may have more rights than the process.
 */
#ifndef SESSION_SOURCE_FILE_H
#define SESSION_SOURCE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "helper/helper.h"
#include "pybpf.h"
#include "symbols/pysym.h"

/* Longest text that is kept. */
#define SOURCE_FILE_MAX (1 << 20)
/* Most supplementary groups that are taken over; a process may have 65,536. */
#define SOURCE_GROUPS_MAX 32

/* Credentials with which a file is opened; filled by source_file_look(). */
struct source_rights {
	struct pybpf_rights thread;
	bool own_namespace; /* the process is in pybpf's user namespace, so that its capabilities count for files */
	uint32_t group_count;
	gid_t groups[SOURCE_GROUPS_MAX];
};

/* Identifies a file and its state. */
struct source_identity {
	uint64_t dev, inode, size;
	int64_t changed_s, changed_ns;   /* st_ctim */
	int64_t modified_s, modified_ns; /* st_mtim */
};

/* The file to look up: a path in the view of a process. */
struct source_file {
	pid_t pid;
	uint64_t start;   /* of the process, clock ticks since boot */
	const char *path; /* absolute, as the process sees it */
};

/*
 * Identifies the regular file of at most SOURCE_FILE_MAX bytes at the path, as a thread of these rights finds it. Fills
 * *identity, and *rights with the thread's rights and groups. Returns 0 or negative errno; -ESTALE when the file, or a
 * link or folder on the way, was changed after the program began, so that its text may be another one; -ENOENT also for
 * a path that is not absolute: where the process was when it made the path cannot be known.
 */
int source_file_look(const struct source_file *file, const struct pybpf_rights *thread, struct source_rights *rights,
		     struct source_identity *identity);

/* Says with -v why the text of a file is not shown: the error of source_file_look(), or another one. */
void source_file_leave_out(const char *shown, const char *path, int err);

/*
 * Sets *out to the text of the file, which the caller frees, with lines that end in "\n". The file is opened below the
 * root of the process or, when that has ended, below pybpf's own. Returns 0; -ESTALE when another file is there by now;
 * -EILSEQ when the text contains a NUL; -EACCES and others when it cannot be read with these rights; -ENOMEM; or an
 * error of helper_call().
 */
int source_file_text(const struct source_file *file, const struct source_rights *rights,
		     const struct source_identity *identity, char **out);

/*
 * Reads the rights with which a process, or a thread, opens files. Returns whether they are known; if not, they are
 * such that no file can be read with them.
 */
bool source_read_rights(pid_t task, struct pybpf_rights *rights);

/* As pysym_look_at_path(). */
pysym_look source_file_look_at_path;

/* How helpers answer: rows of the table in cli/services.c. */
helper_service source_file_serve_look, source_file_serve_text, source_file_serve_look_at_path;

#endif
