// SPDX-License-Identifier: Apache-2.0
/*
 * Gives up what a part of the work no longer needs: capabilities, system calls, folders. Nothing that was given up can
 * be had again, by the process or by what it executes.
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* What is still to be done. */
enum rights_level {
	RIGHTS_SAMPLE, /* programs are loaded, events and outputs open: a run, and writing its profile */
	RIGHTS_LIST,   /* ps: what helpers tell of other processes is printed */
	RIGHTS_REPORT, /* saved profiles and outputs are open: one becomes the other */
	RIGHTS_KEEP,   /* written files are put in their places */
	RIGHTS_MAKE,   /* helpers are forked (foreign.h) */
	RIGHTS_HELP,   /* what others wrote is opened and parsed, and other processes' memory read */
	RIGHTS_LEVELS,
};

struct rights_wanted {
	enum rights_level level;
	/* RIGHTS_SAMPLE: a command that gets signals passed on; 0: none. */
	pid_t command;
	/* RIGHTS_KEEP: descriptors of the folders below which alone it makes, renames and removes files. */
	const int *folders;
	size_t nr_folders;
	/* RIGHTS_KEEP: one of the folders can be written to only by root's overriding its mode; one is sticky. */
	bool override, sticky;
};

/* To be called by the only thread. Returns 0, or negative errno with a sentence in *error. */
int rights_drop(const struct rights_wanted *wanted, struct error *error);

/*
 * In a child, before it executes a program as another user: nothing is left in the sets of capabilities but what the
 * file brings along. Returns 0 or negative errno.
 */
int rights_empty(void);

/* What a process can still do: for `pybpf doctor`. */
struct rights_left {
	uint64_t capabilities; /* permitted; a bit each, by CAP_* of linux/capability.h */
	uint64_t bounding;     /* could be had by executing a file with capabilities */
	bool no_new_privs;
	bool filtered; /* system calls are */
};

/* Of the calling process. */
void rights_read(struct rights_left *left);

/* "cap_bpf, cap_sys_ptrace", or "none". */
void rights_name(uint64_t capabilities, char *out, size_t out_size);

/* The version of Landlock's interface that this kernel offers; negative errno where it offers none. */
int rights_landlock_version(void);

#endif
