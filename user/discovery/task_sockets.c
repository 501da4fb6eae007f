// SPDX-License-Identifier: Apache-2.0
/* Keeps the sockets of a network from one look at a process's tasks to the next. */
#include "discovery/task_sockets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void task_sockets_begin(struct task_sockets *s, pid_t pid)
{
	if (s->pid != pid) {
		free(s->items);
		memset(s, 0, sizeof(*s));
		s->pid = pid;
	}
	s->is_fresh = false;
}

static void read_anew(struct task_sockets *s)
{
	free(s->items);
	memset(s->listens, 0, sizeof(s->listens));
	if (procfs_read_sockets(s->pid, &s->items, &s->count))
		s->count = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct procfs_socket *socket = &s->items[i];
		const uint8_t kind = PYBPF_WAIT_LISTENING | PYBPF_WAIT_DATAGRAM;

		if ((socket->wait.flags & kind) == PYBPF_WAIT_LISTENING && socket->local_port < TASK_SOCKETS_PORTS)
			s->listens[socket->local_port / 8] |= (uint8_t)(1u << socket->local_port % 8);
	}
	s->is_fresh = true;
}

static const struct procfs_socket *find(struct task_sockets *s, uint64_t inode)
{
	const struct procfs_socket *socket = procfs_find_socket(s->items, s->count, inode);

	if (socket || s->is_fresh)
		return socket;
	read_anew(s);
	return procfs_find_socket(s->items, s->count, inode);
}

bool task_sockets_find(struct task_sockets *s, int fd, struct pybpf_wait *peer)
{
	const struct procfs_socket *socket;
	char path[64], target[64];
	uint64_t inode;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", s->pid, fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	if (sscanf(target, "socket:[%" SCNu64 "]", &inode) != 1)
		return false;
	socket = find(s, inode);
	if (!socket)
		return false;
	*peer = socket->wait;
	peer->state = PYBPF_STATE_NETWORK;
	if (!(peer->flags & (PYBPF_WAIT_LISTENING | PYBPF_WAIT_DATAGRAM)) && socket->local_port < TASK_SOCKETS_PORTS &&
	    s->listens[socket->local_port / 8] & 1u << socket->local_port % 8)
		*peer = (struct pybpf_wait){.state = PYBPF_STATE_NETWORK,
					    .file = peer->file,
					    .flags = PYBPF_WAIT_ACCEPTED,
					    .number = socket->local_port};
	return true;
}
