// SPDX-License-Identifier: Apache-2.0
/* Reads the stacks of threads that have slept since the run began, some threads of a process at a time. */
#ifndef SESSION_INITIAL_STACKS_READ_H
#define SESSION_INITIAL_STACKS_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "processes/processes.h"
#include "pybpf_wait.h"
#include "session/waits/initial_stacks.h"

/* A stack that was read, which many threads may have. */
struct session_known_stack {
	uint64_t proc_id, hash;
	uint64_t stack_id;
};

/* Returns whether the thread still sleeps as it did when the run began. */
bool session_initial_still_sleeps(const struct session *s, const struct pybpf_thread_found *found);

/* Reads the stacks of some threads of the process. Returns 0, or negative errno when it is not to be asked any more. */
int session_initial_stacks_read(struct session *s, struct session_initial_process *process,
				const struct processes_record *record);

#endif
