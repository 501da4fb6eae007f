// SPDX-License-Identifier: Apache-2.0
/*
 * Whom unix sockets are connected to, as the kernel has it (sock_diag(7)). /proc/net/unix has the same in lines, but
 * writes names as they are, and a name may have a newline: whoever makes a socket can make a line of any other one.
 */
#ifndef DUMP_PEERS_H
#define DUMP_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf_wait.h"

struct dump_peers;

/*
 * Opens a socket for questions in each network that processes are in, first of those with these PIDs: the kernel
 * answers for the network of the socket that asks. To be called before rights are dropped, by the only thread: other
 * networks than one's own take CAP_SYS_ADMIN, and are left out without it. Returns 0 or negative errno.
 */
int dump_peers_open(const uint32_t *pids, size_t count, struct dump_peers **out);
/* Accepts NULL. */
void dump_peers_close(struct dump_peers *peers);

/*
 * Describes the unix socket with that inode, in any of the networks: by its name or, without one, by its peer's.
 * Returns false if there is none, or if it was not found before until_ns, on CLOCK_MONOTONIC.
 */
bool dump_peers_describe(const struct dump_peers *peers, uint64_t inode, uint64_t until_ns, struct pybpf_wait *out);

#endif
