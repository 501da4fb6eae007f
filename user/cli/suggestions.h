// SPDX-License-Identifier: Apache-2.0
/* Finds the words that a mistyped one may stand for: options, commands, formats, functions. */
#ifndef CLI_SUGGESTIONS_H
#define CLI_SUGGESTIONS_H

#include <stddef.h>

/* Most words that a message suggests. */
#define CLI_SUGGESTIONS_MAX 3

struct cli_suggestions {
	const char *word; /* as typed */
	size_t count;
	struct cli_suggestion {
		const char *word; /* not copied */
		unsigned distance;
	} found[CLI_SUGGESTIONS_MAX]; /* the nearest first */
};

/* Begins a search for words near to `word`. */
void cli_suggestions_begin(struct cli_suggestions *suggestions, const char *word);
/* Keeps the candidate if it is near, and nearer than others. */
void cli_suggestions_try(struct cli_suggestions *suggestions, const char *candidate);
/*
 * Writes "; did you mean PREFIXa, PREFIXb or PREFIXc?" into out, or "" if no candidate was near. Returns out.
 */
const char *cli_suggestions_text(const struct cli_suggestions *suggestions, const char *prefix, char *out, size_t size);

#endif
