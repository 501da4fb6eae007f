// SPDX-License-Identifier: Apache-2.0
/* What a run with --async=all says at its end of suspended tasks. */
#ifndef SESSION_SUSPENDED_ACCOUNT_H
#define SESSION_SUSPENDED_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct session_suspended_account {
	bool looked;          /* the run has looked for them */
	uint64_t snapshots;   /* of a process each */
	uint64_t failed;      /* snapshots that the process, or its memory, did not answer */
	uint64_t interval_ns; /* mean time between two of a process */
	uint64_t longest_ns;  /* longest such time */
	uint64_t cost_ns;     /* time that snapshots took */
	uint64_t suspended;   /* tasks in all snapshots, by what was found */
	uint64_t running;
	uint64_t ended;
	uint64_t moving;
	uint64_t torn;      /* lists of tasks that were not read to their ends */
	uint64_t beyond;    /* snapshots with more tasks than are read */
	uint64_t most;      /* suspended tasks in one snapshot */
	uint64_t ns;        /* their time in the profile */
	uint64_t unkept_ns; /* of it, in stacks for which there was no room */
};

#endif
