// SPDX-License-Identifier: Apache-2.0
/* Whom the sockets of a process's tasks are connected to; to be used in a helper process. */
#ifndef DISCOVERY_TASK_SOCKETS_H
#define DISCOVERY_TASK_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs_sockets.h"

#define TASK_SOCKETS_PORTS 65536

/* All zero at first. */
struct task_sockets {
	pid_t pid;
	bool is_fresh; /* they were read for these tasks */
	struct procfs_socket *items;
	size_t count;
	uint8_t listens[TASK_SOCKETS_PORTS / 8]; /* a bit for each port of TCP */
};

/* Begins with tasks of a process, in whose network the sockets are read once if one is not known. */
void task_sockets_begin(struct task_sockets *s, pid_t pid);
/*
 * Writes the peer of a descriptor of the process. A connection of a server is described by its own port, since clients
 * have another one each time. Returns false if it is no socket of TCP or UDP, or not known.
 */
bool task_sockets_find(struct task_sockets *s, int fd, struct pybpf_wait *peer);

#endif
