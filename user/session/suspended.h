// SPDX-License-Identifier: Apache-2.0
/* The time of asyncio's suspended tasks, by snapshots of them: --async=all. */
#ifndef SESSION_SUSPENDED_H
#define SESSION_SUSPENDED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "session/suspended_account.h"

struct session;
struct session_due;

struct session_suspended {
	struct intern processes; /* the last snapshot of each */
	struct intern stacks;    /* time by process and stack */
	double next;             /* CLOCK_MONOTONIC seconds of the next look at the processes */
	double until;            /* likewise, of the end of this one */
	uint64_t end_ns;         /* of the run, CLOCK_MONOTONIC; 0: it goes on */
	double last_until_s;     /* session_used_s() after which no last snapshot is taken */
	uint64_t seed;
	uint64_t intervals, intervals_ns;
	struct session_suspended_account account;
};

void session_suspended_init(struct session_suspended *u);
void session_suspended_free(struct session_suspended *u);

/*
 * Takes a snapshot of each process of which one is due, for some milliseconds at most. now: CLOCK_MONOTONIC seconds.
 * Returns when to call it next, a large number for never, or negative errno.
 */
double session_suspended_look(struct session *s, double now);
/* Takes the last snapshots; to be called when the run ends. Returns 0 or negative errno. */
int session_suspended_end(struct session *s);
/* Puts the time of the processes that are due into the profile, and forgets these. Returns 0 or negative errno. */
int session_suspended_settle(struct session *s, const struct session_due *due);

void session_suspended_tell(const struct session *s, struct session_suspended_account *account);
void session_suspended_print(const struct session_suspended_account *account, FILE *out);

#endif
