// SPDX-License-Identifier: Apache-2.0
/* Lines of compiled code, read in a helper process (helper.h). As in native/ask.h, functions may return -EINPROGRESS.
 */
#ifndef NATIVE_ASK_LINES_H
#define NATIVE_ASK_LINES_H

#include "native/ask.h"
#include "native/lines.h"

/* Most places of one question: a helper that takes 5 seconds for an answer is killed. */
#define NATIVE_PLACES_MAX 256
/* Most functions of an answer. */
#define NATIVE_LINES_MAX 1900

struct native_lines_found {
	struct native_identity file;
	uint32_t places; /* that have their answer: the first ones of those asked for, at least one */
	uint32_t count;
	uint64_t cpu_ns;                            /* CPU time that the answer took */
	struct native_line lines[NATIVE_LINES_MAX]; /* in order of place, functions of one as of native_lines_find() */
};
_Static_assert(sizeof(struct native_lines_found) <= HELPER_ANSWER_MAX, "an answer holds all lines");
_Static_assert(NATIVE_LINES_MAX >= NATIVE_INLINED_MAX, "one place has its answer");

/*
 * Reads what is at pcs, which are in order. Returns 0, -ENOENT when the file has no information for debuggers, and none
 * is found; -ENOLINK when it is in other files (native_lines_open()); -EFBIG when it is too large; or another negative
 * errno.
 */
int native_ask_lines(const struct native_source *source, uint64_t base, const uint32_t *pcs, uint32_t count,
		     struct native_lines_found *out);

/* A row of the table in cli/services.c. */
helper_service native_serve_lines;

#endif
