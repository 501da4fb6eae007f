// SPDX-License-Identifier: Apache-2.0
/*
 * Gives up what a part of the work no longer needs: capabilities, system calls, folders, descriptors. Neither the
 * process nor a program that it executes can get back what was given up.
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* The part of the work that is still to be done. */
enum rights_level {
	RIGHTS_SAMPLE,         /* programs are loaded, events and outputs open: a run, and writing its profile */
	RIGHTS_LIST,           /* ps: prints what helpers report of other processes */
	RIGHTS_FREEZE,         /* dump --freeze: also stops processes and lets them go on */
	RIGHTS_REPORT,         /* saved profiles and outputs are open: one becomes the other */
	RIGHTS_COMMIT,         /* written files are put in their places */
	RIGHTS_KEEP,           /* files in a folder are made, read, named and removed */
	RIGHTS_FORKSERVER,     /* helpers are forked (helper.h) */
	RIGHTS_HELPER,         /* what others wrote is opened and parsed, and other processes' memory read */
	RIGHTS_NETWORK_KEEPER, /* the process with the network is forked, and forked again if it crashes (push.h) */
	RIGHTS_NETWORK,        /* profiles are sent: the network, and the descriptors that are open */
	RIGHTS_SERVE_KEEPER,   /* the process that serves is forked, and forked again if it crashes (serve.h) */
	RIGHTS_SERVE,          /* clients are served, by the socket that listens and those that it accepts */
	RIGHTS_OPEN,           /* perf events are opened on CPUs that come online (kernel/opener.h) */
	RIGHTS_LEVELS,
};

struct rights_wanted {
	enum rights_level level;
	/* RIGHTS_SAMPLE: a command that gets signals passed on; 0: none. */
	pid_t command;
	bool makes_maps; /* RIGHTS_SAMPLE: makes BPF maps while it samples */
	/* RIGHTS_COMMIT and RIGHTS_KEEP: descriptors of folders; files are made, renamed and removed only below them.
	 */
	const int *folders;
	size_t nr_folders;
	/*
	 * RIGHTS_COMMIT: override: root can write to one of the folders only by overriding its mode. sticky: one is
	 * sticky.
	 */
	bool override, sticky;
};

/*
 * Gives up what the level does not need. To be called by the process's only thread. Returns 0, or negative errno with a
 * sentence in *error.
 */
int rights_drop(const struct rights_wanted *wanted, struct error *error);

/*
 * Closes all descriptors but the standard streams and the kept ones, which it sorts. To be called before rights_drop().
 * Returns 0 or negative errno.
 */
int rights_keep_descriptors(int *kept, size_t count);

/*
 * Becomes a user without rights, whom nothing belongs to, if the process is root's, and gives up all capabilities.
 * Returns 0, or negative errno with a sentence in *error.
 */
int rights_become_nobody(struct error *error);

/*
 * In a child, before it executes a program as another user: empties the sets of capabilities, so that the program has
 * only those that its file brings along. Returns 0 or negative errno.
 */
int rights_empty(void);

/* What a process can still do: for `pybpf doctor`. */
struct rights_left {
	uint64_t capabilities; /* permitted; a bit each, by CAP_* of linux/capability.h */
	uint64_t bounding;     /* could be gained by executing a file with capabilities */
	bool no_new_privs;
	bool filtered; /* system calls are filtered */
};

/* Reads what the calling process can still do. */
void rights_read(struct rights_left *left);

/* Writes the names of the capabilities to out: "CAP_SYS_PTRACE, CAP_BPF", or "none". */
void rights_name(uint64_t capabilities, char *out, size_t out_size);

/* Returns the version of Landlock's interface that this kernel offers; negative errno without Landlock. */
int rights_landlock_version(void);

#endif
