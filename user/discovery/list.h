// SPDX-License-Identifier: Apache-2.0
/* Lists the Python processes that a filter wants, and says why some of them cannot be sampled. */
#ifndef DISCOVERY_LIST_H
#define DISCOVERY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "discovery/discovery.h"
#include "discovery/filter.h"

/* Number of unreadable processes that are named. */
#define PS_DENIED_NAMED 8

struct ps_python {
	char version[40]; /* 3.14.0t; t: free-threaded, d: a debug build */
	char *path;       /* of the file that holds the interpreter, as the process sees it */
};

struct ps_row {
	struct scan_process process;
	struct container container; /* id is "" for none, and where it is not known */
	/* Errors with which its container and its arguments could not be read; 0: they were. */
	int container_unread, command_unread;
	bool supported;
	struct ps_python python;
	struct ps_python more[PYBPF_MAX_RUNTIMES - 1]; /* the process's other Pythons, if it has any */
	size_t nr_more;
	char *refusal;        /* one sentence, where the process is not supported */
	char *user, *command; /* command: the arguments, or "[comm]" without any, and where they are not known */
};

struct ps_list {
	struct ps_row *rows; /* by PID */
	size_t count;
	size_t looked_at;       /* processes that the filter wants */
	size_t denied;          /* not readable, and without Python in their names */
	char denied_names[256]; /* of the first of those: "1 (init), 12 (agent)" */
	struct error denial;    /* of the first one */
	bool hidden;            /* /proc does not show every process (proc(5), hidepid) */
	bool missing;           /* a PID that was asked for does not exist (any more) */
	bool unread;            /* something that the list says could not be read: a helper gave no answer */
};

/*
 * Lists every process that the filter, which has been resolved, wants. Says on stderr why a process that the filter
 * names by PID is not in the list. Returns 0 or negative errno.
 */
int ps_collect(const struct discovery_filter *filter, struct ps_list *list);
void ps_free(struct ps_list *list);

/*
 * Fills in the Pythons of a row: those that run, and one that is mapped but does not run only where no other runs.
 * Returns 0 or -ENOMEM.
 */
int ps_fill_pythons(const struct discovery_python *pythons, size_t count, struct ps_row *row);

/*
 * Writes a table, with the processes that are not supported, and what could not be read, below it. width: columns of
 * the terminal, 0: no terminal. Returns 0 or -ENOMEM.
 */
int ps_table(const struct ps_list *list, size_t width, FILE *out);
void ps_json(const struct ps_list *list, FILE *out);

#endif
