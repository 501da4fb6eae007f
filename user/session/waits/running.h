// SPDX-License-Identifier: Apache-2.0
/* The time that threads were on a CPU: the kernel adds it up by thread, and samples say in which stacks. */
#ifndef SESSION_RUNNING_H
#define SESSION_RUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "pybpf_wait.h"

struct session;
struct session_due;

/* Samples of one thread with one stack. */
struct session_cpu_count {
	struct pybpf_thread_key thread;
	uint64_t count;
	uint32_t stack; /* of the profile */
	uint32_t pad;
	struct pybpf_count_key key; /* of the kernel's map */
};

struct session_running {
	struct intern times; /* by thread */
	struct session_cpu_count *samples;
	size_t nr_samples, samples_room;
};

void session_running_init(struct session_running *r);
void session_running_free(struct session_running *r);

/* Takes the CPU samples of a stack of a thread. Returns 0 or -ENOMEM. */
int session_running_add_samples(struct session_running *r, const struct pybpf_count_key *key, uint32_t stack,
				uint64_t count);
/* Adds to the time of a thread. Returns 0 or -ENOMEM. */
int session_running_add(struct session *s, const struct pybpf_thread_key *thread, uint64_t ns);
/* Puts the time of the processes that are due into the profile. Returns 0 or -ENOMEM. */
int session_running_share(struct session *s, const struct session_due *due);

#endif
