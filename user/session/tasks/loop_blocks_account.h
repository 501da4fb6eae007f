// SPDX-License-Identifier: Apache-2.0
/* What a run with --async says at its end of callbacks that blocked their event loops. */
#ifndef SESSION_LOOP_BLOCKS_ACCOUNT_H
#define SESSION_LOOP_BLOCKS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Places that are listed, those with the longest time in sum. */
#define SESSION_LOOP_BLOCKS_LISTED 10
/* Longest name of a task's frame and of "function (file:line)", with their NULs. */
#define SESSION_LOOP_BLOCKS_TASK  288
#define SESSION_LOOP_BLOCKS_WHERE 256

struct session_loop_block {
	char task[SESSION_LOOP_BLOCKS_TASK];   /* "[task: NAME]"; empty: a callback of no task, or of several */
	uint32_t nr_tasks;                     /* with different names */
	char where[SESSION_LOOP_BLOCKS_WHERE]; /* empty: not known */
	uint64_t count, ns, longest_ns;
};

struct session_loop_blocks_account {
	uint64_t limit_ns; /* 0: not looked for */
	/* What was looked at: samples, with so much CPU time between two of them, or 0 for none; switches between
	 * threads. */
	uint64_t sampled_ns;
	bool switches;
	bool asyncio; /* a process has loaded it */
	struct session_loop_block sum, listed[SESSION_LOOP_BLOCKS_LISTED];
	uint64_t nr_places, lost;
};

#endif
