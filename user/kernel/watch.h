// SPDX-License-Identifier: Apache-2.0
/* The kernel's events of processes: found, forked, executed, ended; and their executable mappings. */
#ifndef KERNEL_WATCH_H
#define KERNEL_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"

struct kernel;

/*
 * Identity of a file in perf's records (PERF_RECORD_MMAP2). Overlay file systems come and go with their containers, and
 * the device number of one that is gone is given to the next: the path helps to tell their files apart.
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

/* Callbacks for events of processes and for mappings. */
struct kernel_watcher {
	void (*on_process)(const struct pybpf_process_event *event, void *arg);
	void (*on_mapping)(const struct kernel_mapping *mapping, void *arg);
	void *arg;
};

/* Opens the buffers for events of processes and for mappings. Returns 0, or negative errno after reporting what failed.
 */
int kernel_open_watch(struct kernel *k, const struct kernel_watcher *watcher);
/* Starts the events of forks, execs and exits. Returns as kernel_open_watch does. */
int kernel_attach_watch(struct kernel *k);
/* Has the kernel go through all tasks; calls on_process for each wanted one. Returns as kernel_open_watch does. */
int kernel_find_processes(struct kernel *k);

/* Descriptors that poll readable when events or mappings are waiting. */
#define KERNEL_WATCH_FDS 2
void kernel_get_watch_fds(const struct kernel *k, int fds[KERNEL_WATCH_FDS]);
/* Calls on_process for the waiting events. Returns 0 or negative errno. */
int kernel_consume_processes(struct kernel *k);
/* Calls on_mapping for the waiting mappings; it may call kernel_consume_processes. */
void kernel_consume_mappings(struct kernel *k);

/* Numbers of what the kernel dropped because a buffer was full. */
struct kernel_losses {
	uint64_t events;   /* of processes that the filters let pass; also those for which no program ran */
	uint64_t others;   /* events of processes that the filters keep out */
	uint64_t mappings; /* of any process of the machine: the kernel does not tell of which */
};

void kernel_read_losses(const struct kernel *k, struct kernel_losses *out);

#endif
