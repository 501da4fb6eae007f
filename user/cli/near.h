// SPDX-License-Identifier: Apache-2.0
/* Finds the words that a mistyped one may stand for: options, commands, formats, functions. */
#ifndef CLI_NEAR_H
#define CLI_NEAR_H

#include <stddef.h>

/* Most words that a message suggests. */
#define CLI_NEAR_MAX 3

struct cli_near {
	const char *word; /* as typed */
	size_t count;
	struct cli_near_found {
		const char *word; /* not copied */
		unsigned distance;
	} found[CLI_NEAR_MAX]; /* the nearest first */
};

/* Begins a search for words near to `word`. */
void cli_near_begin(struct cli_near *near, const char *word);
/* Keeps the candidate if it is near, and nearer than others. */
void cli_near_try(struct cli_near *near, const char *candidate);
/*
 * Writes "; did you mean PREFIXa, PREFIXb or PREFIXc?" into out, or "" if no candidate was near. Returns out.
 */
const char *cli_near_ask(const struct cli_near *near, const char *prefix, char *out, size_t size);

#endif
