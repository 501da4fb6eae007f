// SPDX-License-Identifier: Apache-2.0
/* Rows of single instructions, made in a helper process (helper.h). As in native/ask.h, a function may return
 * -EINPROGRESS.
 */
#ifndef NATIVE_ASK_AHEAD_H
#define NATIVE_ASK_AHEAD_H

#include "native/ask.h"

/* An instruction at which a search has ended. */
struct native_stop {
	uint32_t pc;
	uint32_t is_exact; /* as in ahead_add_rows() */
};

/* Most instructions of one question. */
#define NATIVE_STOPS_MAX 512
/* Most rows of an answer. */
#define NATIVE_AHEAD_ROWS_MAX 65536

/* From start up to end the rule holds. */
struct native_ahead_row {
	uint32_t start, end;
	uint32_t rule;
};

struct native_ahead_rows {
	struct native_identity file;
	uint32_t count, pad;
	uint64_t cpu_ns; /* CPU time that the answer took */
	struct native_ahead_row rows[NATIVE_AHEAD_ROWS_MAX];
};
_Static_assert(sizeof(struct native_ahead_rows) <= HELPER_ANSWER_MAX, "an answer holds all rows");

/*
 * Makes rows of instructions, as ahead_add_rows() does, in this process, which is to be a helper. Returns 0 or negative
 * errno.
 */
int native_make_ahead(const struct native_source *source, uint64_t base, const struct native_stop *stops,
		      uint32_t count, struct native_ahead_rows *out);

/*
 * Has rows made of instructions, as ahead_add_rows() does: of a file's code, or of a process's memory if that has no
 * file (native_is_made()). Returns 0 or negative errno.
 */
int native_ask_ahead(const struct native_source *source, uint64_t base, const struct native_stop *stops, uint32_t count,
		     struct native_ahead_rows *out);

/* A row of the table in cli/services.c. */
helper_service native_serve_ahead;

#endif
