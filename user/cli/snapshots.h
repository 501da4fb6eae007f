// SPDX-License-Identifier: Apache-2.0
/* Profiles that are written while a run goes on: their files are open before rights are dropped. */
#ifndef CLI_SNAPSHOTS_H
#define CLI_SNAPSHOTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "output/file/file.h"
#include "output/file/committer.h"
#include "output/output.h"

/* As many can be written in one run. */
#define CLI_SNAPSHOTS_MAX OUTPUT_COMMITTER_FILES

struct cli_snapshots {
	const struct output_format *format;
	struct output_options options;
	char path[PATH_MAX]; /* of the first; further ones have -2, -3... before the suffix */
	struct output_file files[CLI_SNAPSHOTS_MAX];
	struct output_committer committer;
	size_t written;
	struct error error; /* why there are none; code 0: there are */
};

/*
 * Opens the files. path: of -o; NULL: pybpf-top-TIME.pybpf in the current folder, whose failure is kept for
 * cli_snapshots_write(). by_expression: formats that have a place for columns show them; others are refused. Returns an
 * exit code, after one sentence on stderr if it is not CLI_OK.
 */
int cli_snapshots_open(struct cli_snapshots *s, const char *path, bool by_expression);
/*
 * Writes the profile to the next file. Returns 0, or negative errno; *outcome: one sentence on what was written, or why
 * nothing was.
 */
int cli_snapshots_write(struct cli_snapshots *s, const struct profile *profile, struct error *outcome);
/* Discards the files that were not written. May be called at any time. */
void cli_snapshots_close(struct cli_snapshots *s);

#endif
