// SPDX-License-Identifier: Apache-2.0
/* Reads memory of another process without stopping it. */
#ifndef BASE_REMOTE_H
#define BASE_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * Reads exactly size bytes at addr of the process (process_vm_readv). Returns 0, -EFAULT when any of them is
 * not mapped, -ESRCH when the process is gone, -EPERM without the privilege; through a helper also an error of
 * helper_has_no_answer(), which says nothing of the process.
 */
int remote_read(pid_t pid, uint64_t addr, void *buf, size_t size);

/*
 * Reads parts of the memory, one behind the other, in as few calls as the kernel permits. Returns as remote_read().
 */
int remote_read_parts(pid_t pid, const struct iovec *parts, size_t count, void *buf);

/*
 * Makes remote_read() call read from now on; NULL: read by itself again. A mapped file of a server that does not answer
 * would keep this process waiting forever.
 */
void remote_read_by(int (*read)(pid_t pid, uint64_t addr, void *buf, size_t size));

#endif
