// SPDX-License-Identifier: Apache-2.0
/*
 * The source text of the files that most samples are in. A text that may not be the one that ran is not kept: if two
 * files have the same shown name, or if the file was changed after its program began, or replaced since it was met, or
 * does not contain the functions that were met (source_check.h). A text that the thread could not have read is not kept
 * either (source_file.h).
 */
#ifndef SESSION_SOURCES_H
#define SESSION_SOURCES_H

#include <stdint.h>

#include "session/session.h"
#include "symbols/stacks.h"

struct session_sources;

/* Returns NULL when memory is exhausted. */
struct session_sources *session_sources_new(struct session *s);
/* Accepts NULL. */
void session_sources_free(struct session_sources *t);

/* Notes the source file of a function that has run. Returns 0 or -ENOMEM. */
int session_sources_met(struct session_sources *t, const struct stacks_function *function);

/*
 * Asks again for a file about which a helper has given no answer. To be called often; now: CLOCK_MONOTONIC seconds. t
 * may be NULL.
 */
void session_sources_ask_again(struct session_sources *t, double now);

/* Returns the text of the file that profiles show so, which the caller frees; NULL: no text is certain. */
char *session_sources_read(struct session_sources *t, const char *shown);

/* Puts the texts into the profile, once all samples are there. Returns 0 or -ENOMEM. */
int session_sources_collect(struct session_sources *t, struct profile *profile);

#endif
