// SPDX-License-Identifier: Apache-2.0
/* What would be sampled: the Python processes that a filter wants, and why some cannot be. */
#ifndef DISCOVERY_LIST_H
#define DISCOVERY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "discovery/discovery.h"
#include "discovery/filter.h"

struct ps_python {
	char version[40]; /* 3.14.0t; t: free-threaded, d: a debug build */
	char *path;       /* of the file that holds the interpreter, as the process sees it */
};

struct ps_row {
	struct scan_process process;
	struct container container; /* id is "" for none */
	bool supported;
	struct ps_python python;
	struct ps_python more[PYBPF_MAX_RUNTIMES - 1]; /* the process's other Pythons, if it has any */
	size_t nr_more;
	char *refusal;        /* not supported: a sentence */
	char *user, *command; /* command: the arguments, "[comm]" without */
};

struct ps_list {
	struct ps_row *rows; /* by PID */
	size_t count;
	size_t looked_at; /* processes that the filter wants */
	size_t denied;    /* not readable, and by their names no Python */
	bool hidden;      /* /proc does not show every process (proc(5), hidepid) */
	bool missing;     /* a PID that was asked for is none (any more) */
};

/*
 * Looks at every process that the filter, which has been resolved, wants. Says on stderr of each PID that the filter
 * has by its number why it is not in the list. Returns 0 or negative errno.
 */
int ps_collect(const struct discovery_filter *filter, struct ps_list *list);
void ps_free(struct ps_list *list);

/* Writes a table with what is not supported below it; width: of the terminal, 0 for none. Returns 0 or -ENOMEM. */
int ps_table(const struct ps_list *list, size_t width, FILE *out);
void ps_json(const struct ps_list *list, FILE *out);

#endif
