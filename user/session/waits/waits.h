// SPDX-License-Identifier: Apache-2.0
/* The time of threads: takes what the kernel side has added up, and puts it into the profile. */
#ifndef SESSION_WAITS_H
#define SESSION_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "profile/profile.h"
#include "pybpf_wait.h"
#include "session/waits/carry_over.h"
#include "session/waits/gil.h"
#include "session/waits/intervals.h"
#include "session/waits/running.h"
#include "session/waits/initial_stacks.h"
#include "session/waits/wakers.h"

struct kernel;
struct session;
struct session_measure;

struct session_named_wait {
	uint64_t wait_id;
	struct pybpf_wait wait;
	uint64_t forgotten; /* by the kernel, which sends it again: see retained.c */
};

struct session_waits {
	struct intern names; /* struct session_named_wait, by id */
	struct session_initial_stacks initial_stacks;
	struct session_running running;
	struct session_intervals intervals; /* if options.times */
	uint64_t state_ns[PYBPF_NR_STATES]; /* of the threads that are in the profile */
	uint64_t short_waits, short_ns;     /* left out, as options.min_block_ns wants: their number and time */
	/* Time in the profile without its stack, as that was new when the memory was used up, or never came. */
	uint64_t refused_stacks_ns, unsent_stacks_ns;
	struct intern idle;     /* leaf functions of threads that are left out */
	uint64_t idle_threads;  /* asleep throughout, and left out */
	struct session_gil gil; /* of SESSION_GIL */
	struct session_wakers wakers;
	/* In a rolling session: */
	struct session_ahead ahead;
	struct session_parts undecided; /* ended, of processes of which it is not known yet what they run */
	struct pybpf_thread *threads;   /* right before the epoch ends */
	size_t nr_threads, threads_room;
};

extern const struct session_measure session_waits_measure;

#endif
