// SPDX-License-Identifier: Apache-2.0
/* Where a profile goes and as what: -o and -f. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "output.h"
#include "output_file.h"

struct cli_output {
	const char *path; /* NULL: stdout */
	const struct output_format *format;
	struct output_options options;
	struct output_file file;
	bool pager; /* text for a terminal goes through one */
};

/* Lists the formats on stdout, with what asks for each, as a part of --help. */
void cli_output_help(void);

/* Takes -f. Returns 0, or CLI_USAGE after one sentence on stderr. */
int cli_output_format(struct cli_output *output, const char *name);

/*
 * To be called after all options: without -f the path's suffix chooses, and `fallback` where there is no path. What is
 * nothing for a terminal is not written to one. Returns 0, or CLI_USAGE after one sentence on stderr.
 */
int cli_output_choose(struct cli_output *output, const char *fallback);

/*
 * Opens the file, so that what cannot be written fails before a long run; where there is none, does nothing. Returns an
 * exit code, after one sentence on stderr where it is not CLI_OK.
 */
int cli_output_open(struct cli_output *output);

/*
 * Opens the file unless it is open, writes the profile, makes the file appear. Nothing stays of what fails. Returns an
 * exit code, after one sentence on stderr where it is not CLI_OK.
 */
int cli_output_write(struct cli_output *output, const struct profile *profile);

/* The same of anything that `write` writes, which returns 0 or negative errno and may be called again; no format. */
int cli_output_through(struct cli_output *output, int (*write)(const void *what, FILE *out), const void *what);

/* Removes what was opened and not written. May be called at any time. */
void cli_output_discard(struct cli_output *output);

#endif
