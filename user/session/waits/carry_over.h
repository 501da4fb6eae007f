// SPDX-License-Identifier: Apache-2.0
/*
 * The time of threads in a run whose profile is taken in parts: waits that go on are split at the end of each epoch.
 * What an epoch has of a thread adds up to the time from the end of the epoch before, and all epochs of a wait to what
 * the kernel tells when it ends. It knows no session, so that tests play the kernel.
 */
#ifndef SESSION_CARRY_OVER_H
#define SESSION_CARRY_OVER_H

#include "session/waits/time_parts.h"

struct session_ahead {
	struct session_parts reported; /* ahead of the kernel, at the end of the last epoch; sorted by thread */
	uint64_t end_ns;               /* of that epoch, in the kernel's clock */
};

void session_ahead_free(struct session_ahead *ahead);
/* Forgets the threads of a process that has ended. */
void session_ahead_forget_process(struct session_ahead *ahead, uint64_t proc_id);

/* What is known when an epoch ends, or of some processes when they have ended. */
struct session_ahead_news {
	struct session_parts ended;         /* what the kernel's map tells, and removes */
	const struct pybpf_thread *threads; /* living ones, as they were right before; sorted by session_ahead_sort() */
	size_t nr_threads;
	uint64_t end_ns; /* of the epoch, in the kernel's clock; 0: no epoch ends, and all these threads have ended */
	uint64_t min_block_ns;
};

void session_ahead_sort(struct pybpf_thread *threads, size_t count);
/*
 * Calls tell for each part of each thread's time that was not reported before, until it returns a negative errno; a
 * thread that lives is reported with its time on a CPU, also if that is 0. news->ended is sorted, and its times change.
 * Returns 0, that errno, or -ENOMEM.
 */
int session_ahead_settle(struct session_ahead *ahead, struct session_ahead_news *news,
			 int (*tell)(const struct session_part *part, void *arg), void *arg);

#endif
