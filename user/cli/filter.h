// SPDX-License-Identifier: Apache-2.0
/* The options that say what of saved profiles is wanted: those of report and diff alike. */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "profile/edit.h"

enum {
	CLI_FILTER_THREAD = 768,
	CLI_FILTER_CONTAINER,
	CLI_FILTER_UNDER,
	CLI_FILTER_FOCUS,
	CLI_FILTER_IGNORE,
	CLI_FILTER_MERGE,
	CLI_FILTER_ANONYMIZE,
	CLI_FILTER_NO_SOURCE,
};

/* For getopt_long's string, and rows for its table. */
#define CLI_FILTER_SHORT "p:"
#define CLI_FILTER_OPTIONS                                                                                             \
	{"pid", required_argument, NULL, 'p'}, {"thread", required_argument, NULL, CLI_FILTER_THREAD},                 \
		{"container", required_argument, NULL, CLI_FILTER_CONTAINER},                                          \
		{"under", required_argument, NULL, CLI_FILTER_UNDER},                                                  \
		{"focus", required_argument, NULL, CLI_FILTER_FOCUS},                                                  \
		{"ignore", required_argument, NULL, CLI_FILTER_IGNORE},                                                \
		{"merge", no_argument, NULL, CLI_FILTER_MERGE},                                                        \
		{"anonymize", no_argument, NULL, CLI_FILTER_ANONYMIZE},                                                \
	{                                                                                                              \
		"no-source", no_argument, NULL, CLI_FILTER_NO_SOURCE                                                   \
	}

extern const char cli_filter_help[];

/*
 * Takes one option into the edit; *taken says whether it was one of these. Returns 0, or CLI_USAGE after one sentence
 * on stderr.
 */
int cli_filter_option(struct profile_edit *edit, int option, const char *arg, bool *taken);

/* To be called after all options. Returns 0, or an exit code after one sentence on stderr. */
int cli_filter_check(struct profile_edit *edit);

/*
 * Opens saved profiles, while pybpf still has the rights to. Returns count streams for cli_filter_load, or NULL after
 * one sentence on stderr.
 */
FILE **cli_filter_open(char *const paths[], size_t count);

/* Closes what cli_filter_load did not; accepts NULL. */
void cli_filter_close(FILE **files, size_t count);

/*
 * A new profile of what the edit lets pass of the saved ones, which are closed; the caller frees it. NULL after one
 * sentence on stderr.
 */
struct profile *cli_filter_load(const struct profile_edit *edit, char *const paths[], FILE *files[], size_t count);

#endif
