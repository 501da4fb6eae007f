// SPDX-License-Identifier: Apache-2.0
/* The options of report and diff that filter saved profiles. */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include "cli/epochs.h"
#include "cli/options.h"
#include "profile/edit.h"

/* The filter options of saved profiles; their target is a struct profile_edit. */
extern const struct cli_option cli_filter_options[];
/* Those that record has, too: of which frames are in a stack; likewise. */
extern const struct cli_option cli_focus_options[];
/* The options of which functions are the program's own, also of record; likewise. */
extern const struct cli_option cli_own_options[];
/* Those of them that a profile remembers: for who makes one and leaves nothing out. */
extern const struct cli_option *const cli_own_path_options;

/* Checks the filters after all options were parsed. Returns 0, or an exit code after one sentence on stderr. */
int cli_filter_check(struct profile_edit *edit);

/*
 * Opens saved profiles; to be called before pybpf drops its rights. Here and below, epochs of a folder that cannot be
 * read are left out, as of cli_paths_leave_out(). Returns 0, or CLI_FAILED after one sentence on stderr.
 */
int cli_filter_open(struct cli_paths *paths);

/*
 * Loads saved profiles through the edit's filters into one new profile, and closes their files. It is an error if no
 * profile has a function that --under names. Returns the profile, which the caller frees, or NULL after one sentence on
 * stderr.
 */
struct profile *cli_filter_load(const struct profile_edit *edit, struct cli_paths *paths);
/*
 * Likewise one of them, also if it does not have that function. Returns 0 with *profile, NULL if it is left out; or
 * CLI_FAILED after one sentence on stderr.
 */
int cli_filter_load_one(const struct profile_edit *edit, struct cli_paths *paths, size_t index,
			struct profile **profile);
/*
 * As cli_filter_load, but hands over each profile by itself: one at a time is in memory. Returns 0, -ENOMEM, what take
 * returned, or -ECANCELED after one sentence on stderr.
 */
int cli_filter_each(const struct profile_edit *edit, struct cli_paths *paths,
		    int (*take)(void *arg, const struct profile *p), void *arg);

#endif
