// SPDX-License-Identifier: Apache-2.0
/* How long the threads of the sampled processes ran, waited for a CPU and slept, in SESSION_CPU: from schedstat. */
#ifndef SESSION_SCHEDSTAT_H
#define SESSION_SCHEDSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "base/procfs.h"

struct session;
struct session_measure;

/* The time of the threads of one process that were alive at the end of the run. */
struct session_schedstat_process {
	uint64_t proc_id;
	uint64_t threads;
	uint64_t unread; /* began before the run, and were not known then */
	uint64_t late;   /* not read for lack of time, now or when the run began */
	uint64_t running_ns, queued_ns, asleep_ns;
	int64_t ended_ns; /* CPU time of its threads that ended, but for what the others just ran; 0: not known */
};

struct session_schedstat {
	bool known;           /* this kernel counts, and there was memory for it */
	bool cut;             /* there was no time for all threads when the run began */
	uint64_t begin_ticks; /* clock ticks since boot */
	double begin_s;       /* what the reading of threads took when the run began */
	double begin_used_s;  /* likewise, CPU time */
	struct intern begun;  /* threads that were there when the run began */
	struct intern cpu;    /* CPU time of processes at that moment */
	struct session_schedstat_process *processes;
	size_t nr_processes, room;
};

/* What the scheduler has counted of a thread that lives. */
struct session_schedstat_thread {
	pid_t pid, tid;
	uint64_t start_ticks; /* clock ticks since boot */
	uint64_t at_ns;       /* CLOCK_BOOTTIME: when it was read */
	struct procfs_sched sched;
	const char *comm;
};

/*
 * Calls visit for each living thread of the processes that are sampled. Returns 0, or the first negative errno of a
 * visit.
 */
int session_schedstat_visit(struct session *s, int (*visit)(const struct session_schedstat_thread *thread, void *arg),
			    void *arg);

extern const struct session_measure session_schedstat_measure;

#endif
