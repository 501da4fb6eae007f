// SPDX-License-Identifier: Apache-2.0
/* The options that say which processes are wanted: those of record and ps alike. */
#ifndef CLI_SELECT_H
#define CLI_SELECT_H

#include <getopt.h>
#include <stdbool.h>

#include "discovery/filter.h"

enum {
	CLI_SELECT_CONTAINER = 512,
	CLI_SELECT_CGROUP,
	CLI_SELECT_CHILDREN,
	CLI_SELECT_COMM,
	CLI_SELECT_USER,
	CLI_SELECT_NOT_PID,
	CLI_SELECT_NOT_COMM,
	CLI_SELECT_NOT_USER,
	CLI_SELECT_NOT_CONTAINER,
};

/* For getopt_long's string, and rows for its table. */
#define CLI_SELECT_SHORT "p:a"
#define CLI_SELECT_OPTIONS                                                                                             \
	{"pid", required_argument, NULL, 'p'}, {"all", no_argument, NULL, 'a'},                                        \
		{"container", required_argument, NULL, CLI_SELECT_CONTAINER},                                          \
		{"cgroup", required_argument, NULL, CLI_SELECT_CGROUP},                                                \
		{"children", no_argument, NULL, CLI_SELECT_CHILDREN},                                                  \
		{"subprocesses", no_argument, NULL, CLI_SELECT_CHILDREN},                                              \
		{"comm", required_argument, NULL, CLI_SELECT_COMM},                                                    \
		{"user", required_argument, NULL, CLI_SELECT_USER},                                                    \
		{"exclude-pid", required_argument, NULL, CLI_SELECT_NOT_PID},                                          \
		{"exclude-comm", required_argument, NULL, CLI_SELECT_NOT_COMM},                                        \
		{"exclude-user", required_argument, NULL, CLI_SELECT_NOT_USER},                                        \
	{                                                                                                              \
		"exclude-container", required_argument, NULL, CLI_SELECT_NOT_CONTAINER                                 \
	}

extern const char cli_select_help[];

/*
 * Takes one option into the filter; *taken says whether it was one of these. Returns 0, or CLI_USAGE after one
 * sentence on stderr.
 */
int cli_select_option(struct discovery_filter *filter, int option, const char *arg, bool *taken);

/*
 * Looks for contradictions; command says whether a program is to be started. Where there are only filters they are
 * those of all processes. Returns 0, or CLI_USAGE after one sentence on stderr.
 */
int cli_select_check(struct discovery_filter *filter, bool command);

#endif
