// SPDX-License-Identifier: Apache-2.0
/* The options of report and diff that filter saved profiles. */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include <stdio.h>

#include "cli/options.h"
#include "profile/edit.h"

/* The filter options of saved profiles; their target is a struct profile_edit. */
extern const struct cli_option cli_filter_options[];
/* Those that record has, too: of which frames are in a stack; likewise. */
extern const struct cli_option cli_focus_options[];
/* The options of which functions are the program's own, also of record; likewise. */
extern const struct cli_option cli_own_options[];

/* Checks the filters after all options were parsed. Returns 0, or an exit code after one sentence on stderr. */
int cli_filter_check(struct profile_edit *edit);

/*
 * Opens `count` saved profiles; to be called before pybpf drops its rights. Returns count streams for cli_filter_load,
 * or NULL after one sentence on stderr.
 */
FILE **cli_filter_open(char *const paths[], size_t count);

/* Closes the streams that cli_filter_load did not close, and frees the array; accepts NULL. */
void cli_filter_close(FILE **files, size_t count);

/*
 * Loads saved profiles through the edit's filters into one new profile, and closes their streams. Returns the profile,
 * which the caller frees, or NULL after one sentence on stderr.
 */
struct profile *cli_filter_load(const struct profile_edit *edit, char *const paths[], FILE *files[], size_t count);
/* As cli_filter_load, but it is an error if no profile has a function that --under names. */
struct profile *cli_filter_load_met(const struct profile_edit *edit, char *const paths[], FILE *files[], size_t count);
/*
 * As cli_filter_load_met, but hands over each profile by itself: one at a time is in memory. Returns 0, -ENOMEM, what
 * take returned, or -ECANCELED after one sentence on stderr.
 */
int cli_filter_each(const struct profile_edit *edit, char *const paths[], FILE *files[], size_t count,
		    int (*take)(void *arg, const struct profile *p), void *arg);

#endif
