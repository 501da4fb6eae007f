// SPDX-License-Identifier: Apache-2.0
/* Memory of another process, read without stopping it. */
#ifndef BASE_REMOTE_H
#define BASE_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads exactly size bytes at addr of the process (process_vm_readv). Returns 0, -EFAULT when any of them is
 * not mapped, -ESRCH when the process is gone, -EPERM without the privilege.
 */
int remote_read(pid_t pid, uint64_t addr, void *buf, size_t size);

/*
 * From now on remote_read() is done by read: memory that is a file of a server that does not answer keeps the reader
 * waiting for good. NULL: by itself again.
 */
void remote_read_by(int (*read)(pid_t pid, uint64_t addr, void *buf, size_t size));

#endif
