// SPDX-License-Identifier: Apache-2.0
/*
 * What stands in place of a process, such as its core file: procfs.h and remote.h look there for one PID, so that
 * whoever reads a process by its PID can read a dead one, too.
 */
#ifndef BASE_PROCESS_SOURCE_H
#define BASE_PROCESS_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs.h"

/* Above every PID that the kernel gives (PID_MAX_LIMIT of include/linux/threads.h): no file of /proc is read for it. */
#define PROCESS_SOURCE_PID INT32_MAX

struct process_source {
	const char *comm, *exe; /* its name; the path of its program, "" if that is not known */
	void *of;               /* the argument of all functions, which return as those of procfs.h and remote.h */
	int (*read)(void *of, uint64_t addr, void *buf, size_t size);
	int (*each_map)(void *of, int (*visit)(const struct procfs_map *map, void *arg), void *arg);
	int (*open_map)(void *of, const struct procfs_map *map);
	int (*each_task)(void *of, int (*visit)(pid_t tid, void *arg), void *arg);
	int (*call)(void *of, pid_t tid, struct procfs_call *out);
};

/* Lets *s, which is not copied, stand in for PROCESS_SOURCE_PID from now on, here and in processes that are forked. */
void process_source_set(const struct process_source *s);
/* Returns what stands in for the PID, or NULL. */
const struct process_source *process_source_of(pid_t pid);

#endif
