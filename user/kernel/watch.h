// SPDX-License-Identifier: Apache-2.0
/* The lives of processes as the kernel tells them: found, forked, executed, ended, and what they map executable. */
#ifndef KERNEL_WATCH_H
#define KERNEL_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"

struct kernel;

/*
 * A file as perf's records have it (PERF_RECORD_MMAP2). Overlay file systems come and go with their containers, and the
 * device number of one that is gone is given to the next: the path helps to tell their files apart.
 */
struct kernel_file_id {
	uint32_t major, minor;
	uint64_t inode, generation;
	uint64_t path; /* a hash of it */
};

/* An executable mapping of a file. */
struct kernel_mapping {
	pid_t pid;
	uint64_t start, size, offset;
	struct kernel_file_id file;
};

/* Who is told. */
struct kernel_watcher {
	void (*on_process)(const struct pybpf_process_event *event, void *arg);
	void (*on_mapping)(const struct kernel_mapping *mapping, void *arg);
	void *arg;
};

/* Opens the buffers of both. Returns 0, or negative errno after reporting what failed. */
int kernel_open_watch(struct kernel *k, const struct kernel_watcher *watcher);
/* From now on forks, execs and ends are told. Returns as kernel_open_watch does. */
int kernel_attach_watch(struct kernel *k);
/* Has the kernel go through all tasks, and tells of each process that is wanted. Returns as kernel_open_watch does. */
int kernel_find_processes(struct kernel *k);

/* Descriptors that poll readable when there is something to tell. */
#define KERNEL_WATCH_FDS 2
void kernel_get_watch_fds(const struct kernel *k, int fds[KERNEL_WATCH_FDS]);
/* Tells what has happened to processes since. Returns 0 or negative errno. */
int kernel_consume_processes(struct kernel *k);
/* Tells what was mapped since; on_mapping may call kernel_consume_processes. Returns 0 or negative errno. */
int kernel_consume_mappings(struct kernel *k);

/* How many events of processes found no room in their ring. */
uint64_t kernel_count_lost_processes(const struct kernel *k);
/* Those, mappings that found no room, and what no program saw. */
uint64_t kernel_count_lost(const struct kernel *k);

#endif
