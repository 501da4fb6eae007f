// SPDX-License-Identifier: Apache-2.0
/* The options that say what of saved profiles is wanted: those of report and diff alike. */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include <stdio.h>

#include "cli/options.h"
#include "profile/edit.h"

/* To be taken into a struct profile_edit. */
extern const struct cli_option cli_filter_options[];

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
