// SPDX-License-Identifier: Apache-2.0
/* Saved profiles that are named by their folder, and a span of time. */
#ifndef CLI_EPOCHS_H
#define CLI_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/options.h"

/* The texts of --from and --to, and the word of --mode; NULL: not given. */
struct cli_span {
	const char *from, *to, *mode;
};

/* The options --from and --to, and --mode; their target is a struct cli_span. */
extern const struct cli_option cli_span_options[], cli_mode_options[];

/* A saved profile: a file that an operand names, or one of a folder of epochs. */
struct cli_path {
	char *name;
	FILE *file;       /* NULL: it is not open */
	size_t operand;   /* index of the operand that it stands for */
	uint64_t epochs;  /* in a file of a folder, more than one if it was merged; 0: an operand names it */
	bool is_left_out; /* of a folder: it could not be read */
};

struct cli_paths {
	struct cli_path *items;
	size_t count, room;
	/* The time that epochs in folders cover, ms since 1970, and the number of their files; 0: there was no folder.
	 */
	uint64_t begin_ms, end_ms;
	size_t epochs;
	/* Files of folders that could not be read, and the epochs in them. */
	size_t left_out;
	uint64_t epochs_left_out;
};

/*
 * Puts the operands into paths and, in place of a folder, the paths of its epochs that are in the span or reach into
 * it; FOLDER@FROM..TO has a span of its own, of which FROM or TO may be empty. A folder that has those of several modes
 * needs span->mode. Returns 0, or an exit code after one
 * sentence on stderr; cli_paths_free() in both cases.
 */
int cli_epochs_find(struct cli_paths *paths, char *const operands[], size_t count, const struct cli_span *span);
/*
 * A file cannot be read, for the error: of a folder of epochs it is left out, after one sentence on stderr that says
 * so; the first few are named. Returns 0, or the error's code after the same sentence where that is no answer: an
 * operand names the file, or pybpf has no memory for it.
 */
int cli_paths_leave_out(struct cli_paths *paths, size_t index, const struct error *error);
/*
 * All files were read: says how many were left out without being named. Returns 0, or CLI_FAILED after one sentence on
 * stderr if all of a folder were.
 */
int cli_paths_check_left_out(const struct cli_paths *paths);
/* Says on stderr that an epoch of a folder is of another kind than those before it, and how to choose either. */
void cli_epochs_refuse_sum(const struct cli_path *path, const struct error *error);
/* Says on stderr which time the epochs cover, if there are any, and how many are left out. */
void cli_epochs_tell(const struct cli_paths *paths);
/* Closes the files, too. May be called on a zeroed struct. */
void cli_paths_free(struct cli_paths *paths);

#endif
