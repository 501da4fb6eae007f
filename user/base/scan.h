// SPDX-License-Identifier: Apache-2.0
/* Lists the machine's processes, without reading their mappings. */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct scan_process {
	pid_t pid, ppid;
	pid_t inside;        /* in its own PID namespace; equal to pid if that is the reader's */
	uint64_t start_time; /* clock ticks since boot */
	char comm[64];
	uid_t uid; /* effective */
	unsigned threads;
	bool kernel_thread;
	bool ended; /* it waits for its parent */
};

struct scan_count {
	size_t seen;       /* processes that were handed to visit */
	size_t vanished;   /* ended after being listed, before being read */
	size_t unreadable; /* not readable for another reason */
};

/* Fills *out for one process. Returns 0, -ESRCH when there is no such process, or another negative errno. */
int scan_read_process(pid_t pid, struct scan_process *out);

/*
 * Calls visit for every process of /proc in the order of PIDs until it returns non-zero, and returns that; 0 at the
 * end; negative errno when /proc cannot be listed. count may be NULL.
 */
int scan_each_process(int (*visit)(const struct scan_process *process, void *arg), void *arg, struct scan_count *count);

/*
 * Finds the descendants of the given processes, without these themselves, as /proc has them now; ended processes are
 * left out. Returns 0, with *below for the caller to free, or negative errno. A process whose parent has ended is a
 * descendant of the process that adopted it (init, or PR_SET_CHILD_SUBREAPER).
 */
int scan_find_below(const uint32_t *pids, size_t count, uint32_t **below, size_t *below_count);

/* A process and its parent. */
struct scan_kinship {
	uint32_t pid, parent;
};

/* As scan_find_below(), among these processes. */
int scan_below_among(const struct scan_kinship *kin, size_t kin_count, const uint32_t *pids, size_t count,
		     uint32_t **below, size_t *below_count);

/*
 * Reads the arguments, joined by blanks, as far as they fit; "" when the process has none (a kernel thread) or they
 * cannot be read. They hold anything that the process put there, also control characters.
 */
void scan_read_cmdline(pid_t pid, char *buf, size_t size);

#endif
