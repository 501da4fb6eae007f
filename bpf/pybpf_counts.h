/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is counted, of which thread, and when. */
#ifndef PYBPF_COUNTS_H
#define PYBPF_COUNTS_H

#include "pybpf_stack.h"

/* The unit of a count. */
enum pybpf_kind {
	PYBPF_KIND_CPU,    /* samples of running threads, all of the same weight: the kind has no values */
	PYBPF_KIND_EVENTS, /* an event in a thread; the value is the number of events that the samples stand for */
};

/* Which thread it is. Also the key of map thread_names. */
struct pybpf_thread_key {
	__u64 proc_id;
	__u32 tid; /* 0 if the thread is not counted by itself; so is the next */
	/* When the thread was started, ms since boot modulo 2^32: the process's next thread may get the same TID. */
	__u32 tid_start_ms;
};
_Static_assert(sizeof(struct pybpf_thread_key) == 16, "pybpf_thread_key has no hidden padding");

/* Key of map counts. */
struct pybpf_count_key {
	__u64 stack_id;
	struct pybpf_thread_key thread;
	__u32 kind;             /* enum pybpf_kind */
	__u32 no_frames_reason; /* as in struct pybpf_pseudo_stack */
};
_Static_assert(sizeof(struct pybpf_count_key) == 32, "pybpf_count_key has no hidden padding");

/* Value of map counts. */
struct pybpf_count {
	__u64 count; /* number of samples */
	__u64 value; /* sum of the samples' values, in the kind's unit; 0 where the kind has no values */
};

/*
 * In a run without end, the map of counts, and the maps of the stacks and code objects that user space knows, exist
 * twice: samples use one set of each while user space takes and empties the other. One word names the sets in use, with
 * a set's number in each bit. The second set of known objects is a new generation: stacks and code objects are sent
 * anew, and those that are not met any more are forgotten.
 */
#define PYBPF_SETS               2
#define PYBPF_COUNTS_SET(sets)   ((sets)&1)
#define PYBPF_KNOWN_SET(sets)    ((sets) >> 1 & 1)
#define PYBPF_OTHER_COUNTS(sets) ((sets) ^ 1)
#define PYBPF_OTHER_KNOWN(sets)  ((sets) ^ 2)

/* One sample, where the times of samples are kept; it is in map counts as well. */
struct pybpf_time_event {
	struct pybpf_event event;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct pybpf_count_key key;
};
_Static_assert(sizeof(struct pybpf_time_event) == 48, "pybpf_time_event has no hidden padding");

struct pybpf_thread_name {
	char comm[16];
};

/* A thread whose name the kernel side keeps from now on. */
struct pybpf_thread_event {
	struct pybpf_event event;
	struct pybpf_thread_key thread;
	__u64 thread_id; /* pthread_self() */
};
_Static_assert(sizeof(struct pybpf_thread_event) == 32, "pybpf_thread_event has no hidden padding");

#endif
