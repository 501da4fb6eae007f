// SPDX-License-Identifier: Apache-2.0
/* The time of threads by state while a run of SESSION_CPU goes on: what the kernel side adds up at each switch. */
#ifndef SESSION_STATES_H
#define SESSION_STATES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"
#include "pybpf_wait.h"

struct session;
struct session_measure;

struct session_states {
	bool on;
	struct intern threads; /* struct session_state_thread, by key */
	struct pybpf_wait_key *ended;
	size_t nr_ended, ended_room;
};

/* A thread, and its time since it was met first. */
struct session_states_thread {
	pid_t pid, tid;
	uint64_t start_ms;            /* since boot: tells threads with one TID apart */
	bool lives;                   /* else it has ended, and is counted for the last time */
	const char *name;             /* in Python, where it is known, or in the kernel */
	uint64_t ns[PYBPF_NR_STATES]; /* by enum pybpf_state; none becomes less */
};

/* Returns whether the time by state is kept. */
bool session_states_known(const struct session *s);
/*
 * Calls visit for each thread of the processes that are sampled. Returns 0, the first negative errno of a visit, or
 * that of a failed read.
 */
int session_states_visit(struct session *s, int (*visit)(const struct session_states_thread *thread, void *arg),
			 void *arg);

extern const struct session_measure session_states_measure;

#endif
