// SPDX-License-Identifier: Apache-2.0
/* Where a profile goes and as what: -o and -f. */
#ifndef CLI_DESTINATION_H
#define CLI_DESTINATION_H

#include "cli/options.h"
#include "cli/pager.h"
#include "output/output.h"
#include "output/file.h"
#include "output/keeper.h"

struct cli_output {
	const char *path; /* NULL: stdout */
	const struct output_format *format;
	struct output_options options;
	struct output_file file;
	struct output_keeper keeper;
	bool paged; /* text for a terminal goes through a pager */
	struct cli_pager pager;
};

/* -o and -f, to be taken into a struct cli_output. */
extern const struct cli_option cli_output_path_options[], cli_output_format_options[];

/* Prints a format in the list below -f, as a part of --help. */
void cli_print_format(const struct output_format *format, const char *help);

/*
 * To be called after all options: without -f the path's suffix chooses, and `fallback` where there is no path. A
 * binary format is not written to a terminal. Returns 0, or CLI_USAGE after one sentence on stderr.
 */
int cli_output_choose(struct cli_output *output, const char *fallback);

/*
 * Opens the file, so that what cannot be written fails before a long run, or makes the pager ready; all that takes
 * rights which are given up before anything is written. Returns an exit code, after one sentence on stderr where it is
 * not CLI_OK.
 */
int cli_output_open(struct cli_output *output);

/*
 * Hands the open file, and another one (NULL or zeroed: none), to a process that keeps the right to put them in their
 * places. Returns an exit code, after one sentence on stderr where it is not CLI_OK.
 */
int cli_output_entrust(struct cli_output *output, struct output_file *other);
/* Makes the other one appear. Returns 0 or negative errno. */
int cli_output_commit_other(struct cli_output *output, struct output_file *other);

/* Writes the profile, and makes the file appear. Nothing stays of what fails. Returns an exit code, after one sentence
 * on stderr where it is not CLI_OK. */
int cli_output_write(struct cli_output *output, const struct profile *profile);

/* The same of anything that `write` writes, which returns 0 or negative errno and may be called again; no format. */
int cli_output_through(struct cli_output *output, int (*write)(const void *what, FILE *out), const void *what);

/* Removes what was opened and not written. May be called at any time. */
void cli_output_discard(struct cli_output *output);

#endif
