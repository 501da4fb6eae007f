// SPDX-License-Identifier: Apache-2.0
/* Messages between processes, with descriptors. */
#ifndef CHILD_MESSAGE_H
#define CHILD_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

/* Most descriptors of a message. */
#define CHILD_DESCRIPTORS_MAX 2

/*
 * Sends a message with count descriptors, maybe none, which stay the caller's. flags: of sendmsg(2), beside
 * MSG_NOSIGNAL. Returns 0 or negative errno.
 */
int child_send(int socket, const void *message, size_t size, const int *fds, size_t count, int flags);

/*
 * Receives a message. fds gets its descriptors, which are the caller's then and are closed when a program is executed;
 * -1 for those that did not come. More than count, or none where the kernel had no room for them, are closed. flags: of
 * recvmsg(2). Returns the bytes received, 0 at the end, or negative errno.
 */
ssize_t child_receive(int socket, void *message, size_t size, int *fds, size_t count, int flags);

/* Writes bytes to a file in memory. Returns its descriptor, which is closed when a program is executed, or negative
 * errno. */
int child_write_memory_file(const char *name, const void *bytes, size_t size);

#endif
