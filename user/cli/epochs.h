// SPDX-License-Identifier: Apache-2.0
/* Saved profiles that are named by their folder, and a span of time. */
#ifndef CLI_EPOCHS_H
#define CLI_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options.h"

/* The texts of --from and --to, and the word of --mode; NULL: not given. */
struct cli_span {
	const char *from, *to, *mode;
};

/* The options --from and --to, and --mode; their target is a struct cli_span. */
extern const struct cli_option cli_span_options[], cli_mode_options[];

struct cli_paths {
	char **items;
	size_t count, room;
	/* The time that epochs in folders cover, ms since 1970, and their number; 0: there was no folder. */
	uint64_t begin_ms, end_ms;
	size_t epochs;
};

/*
 * Puts the operands into paths and, in place of a folder, the paths of its epochs that are in the span or reach into
 * it; FOLDER@FROM..TO has a span of its own, of which FROM or TO may be empty. A folder that has those of several modes
 * needs span->mode. Returns 0, or an exit code after one
 * sentence on stderr; cli_paths_free() in both cases.
 */
int cli_epochs_find(struct cli_paths *paths, char *const operands[], size_t count, const struct cli_span *span);
/* Says on stderr which time the epochs cover, if there are any. */
void cli_epochs_tell(const struct cli_paths *paths);
/* May be called on a zeroed struct. */
void cli_paths_free(struct cli_paths *paths);

#endif
