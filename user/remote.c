// SPDX-License-Identifier: Apache-2.0
#include "remote.h"

#include <errno.h>
#include <sys/uio.h>

int remote_read(pid_t pid, uint64_t addr, void *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		struct iovec local = {.iov_base = (char *)buf + done, .iov_len = size - done};
		struct iovec remote = {.iov_base = (void *)(uintptr_t)(addr + done), .iov_len = size - done};
		ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

		/* The kernel cuts a read at the first page that is not there; the next call says EFAULT. */
		if (n < 0)
			return errno == EINVAL ? -EFAULT : -errno;
		if (n == 0)
			return -EFAULT;
		done += n;
	}
	return 0;
}
