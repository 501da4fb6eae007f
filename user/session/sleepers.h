// SPDX-License-Identifier: Apache-2.0
/* Stacks of the threads that sleep when the run begins: no switch shows them. */
#ifndef SESSION_SLEEPERS_H
#define SESSION_SLEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "pybpf_wait.h"

struct session;

struct session_sleeper {
	uint64_t proc_id;
	uint32_t tid;
	bool gil, with_gil; /* it waits for the GIL, or has it */
	uint64_t stack_id;
};

struct session_sleepers {
	struct intern stacks;             /* struct session_sleeper, by process and thread */
	struct pybpf_thread_found *found; /* threads whose stacks are still to be read */
	size_t nr_found, found_room;
};

void session_sleepers_init(struct session_sleepers *l);
void session_sleepers_free(struct session_sleepers *l);

/* Finds the threads that sleep, and reads the stacks of those whose processes are known. Returns 0 or negative errno.
 */
int session_sleepers_find(struct session *s);
/* Reads the stacks of threads that have slept since the start, of processes that are known by now. */
void session_sleepers_look(struct session *s);
/* Returns what was read of the thread of a wait that began before the run, or NULL. */
const struct session_sleeper *session_sleepers_get(const struct session_sleepers *l, const struct pybpf_wait_key *key);

#endif
