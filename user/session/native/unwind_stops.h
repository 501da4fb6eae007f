// SPDX-License-Identifier: Apache-2.0
/* Instructions of a file at which searches for callers have ended, and a table with rows of them. */
#ifndef SESSION_NATIVE_UNWIND_STOPS_H
#define SESSION_NATIVE_UNWIND_STOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "native/ask_ahead.h"

/* Most of one file: no program has as many that samples meet. */
#define NATIVE_STOPS_OF_FILE_MAX 4096

struct native_stops {
	struct intern known; /* struct known_stop */
	uint32_t nr_passed;  /* the first ones, which were asked for */
	bool is_stale;       /* other code may be where rows were made: all are to be made anew */
	double next_at;      /* CLOCK_MONOTONIC seconds: not to be asked for before */
	double pause_s;      /* until the next time */
	/* The question that goes on. */
	uint32_t nr_asked; /* 0: none does */
	bool is_anew;      /* it is the first one of all anew */
	struct native_source source;
};

/* Returns NULL without memory. */
struct native_stops *native_stops_new(void);
/* Accepts NULL. */
void native_stops_free(struct native_stops *s);

/*
 * Adds an instruction. One that has had a row for a while led to what is no return address: other code may be there.
 * now: CLOCK_MONOTONIC seconds.
 */
void native_stops_add(struct native_stops *s, const struct native_stop *stop, double now);
/* Returns whether there is something to ask. now: CLOCK_MONOTONIC seconds. */
bool native_stops_are_due(const struct native_stops *s, double now);
/*
 * Copies those that are to be asked for next to out, NATIVE_STOPS_MAX at most, which are the same until
 * native_stops_pass() is called; the source is that of the first call. Returns their number.
 */
uint32_t native_stops_next(struct native_stops *s, const struct native_source *source, struct native_stop *out);
/*
 * The question has this answer; NULL: it has none. now: CLOCK_MONOTONIC seconds; pause_most_s: longest time until the
 * next one.
 */
void native_stops_pass(struct native_stops *s, const struct native_ahead_rows *answer, double now, double pause_most_s);

#endif
