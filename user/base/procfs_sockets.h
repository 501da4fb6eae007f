// SPDX-License-Identifier: Apache-2.0
/*
 * The sockets of TCP, UDP, netlink and packets in the network of a process, as /proc/PID/net lists them: in numbers
 * only, so that nobody can add a line. (/proc/net/unix has names, which may have newlines.)
 */
#ifndef BASE_PROCFS_SOCKETS_H
#define BASE_PROCFS_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf_wait.h"

struct procfs_socket {
	uint64_t inode;
	struct pybpf_wait wait; /* file, flags, number and address of the peer, or of its own if it listens */
	uint32_t local_port;
	uint32_t pad;
};

/*
 * Reads the sockets, sorted by inode, into an array that the caller frees. What cannot be read is left out. Returns 0
 * or -ENOMEM.
 */
int procfs_read_sockets(pid_t pid, struct procfs_socket **out, size_t *count);
/* Returns the socket with that inode, or NULL. */
const struct procfs_socket *procfs_find_socket(const struct procfs_socket *sockets, size_t count, uint64_t inode);

#endif
