// SPDX-License-Identifier: Apache-2.0
/* Reads and writes of files to their end: after a signal, and where the kernel has taken a part only, they go on. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes where the file stands. Returns 0 or negative errno, when a part may be written. */
int io_write(int fd, const void *bytes, size_t size);
/* Likewise at an offset. */
int io_write_at(int fd, const void *bytes, size_t size, uint64_t offset);
/* Returns the number of bytes, fewer than size at the end of the file, or negative errno. */
ssize_t io_read_at(int fd, void *bytes, size_t size, uint64_t offset);

#endif
