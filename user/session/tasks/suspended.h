// SPDX-License-Identifier: Apache-2.0
/* The time of asyncio's suspended tasks, by snapshots of them: --async=all. */
#ifndef SESSION_SUSPENDED_H
#define SESSION_SUSPENDED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "session/tasks/suspended_account.h"

struct session;
struct session_measure;

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

extern const struct session_measure session_suspended_measure;

#endif
