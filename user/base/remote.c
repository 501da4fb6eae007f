// SPDX-License-Identifier: Apache-2.0
/* Reads another process's memory with process_vm_readv(2). */
#include "base/remote.h"

#include <errno.h>
#include <sys/uio.h>

#include "base/procfs.h"
#include "base/stand_in.h"

static int (*reader)(pid_t pid, uint64_t addr, void *buf, size_t size);

void remote_read_by(int (*read)(pid_t pid, uint64_t addr, void *buf, size_t size))
{
	reader = read;
}

int remote_read(pid_t pid, uint64_t addr, void *buf, size_t size)
{
	const struct stand_in *other = stand_in_for(pid);
	size_t done = 0;
	pid_t task = pid;

	if (reader)
		return reader(pid, addr, buf, size);
	if (other)
		return other->read(other->of, addr, buf, size);
	while (done < size) {
		struct iovec local = {.iov_base = (char *)buf + done, .iov_len = size - done};
		struct iovec remote = {.iov_base = (void *)(uintptr_t)(addr + done), .iov_len = size - done};
		ssize_t n = process_vm_readv(task, &local, 1, &remote, 1, 0);

		/* The process's first thread may have ended before others. */
		if (n < 0 && errno == ESRCH && task == pid) {
			task = procfs_task(pid, NULL);
			if (!task || task == pid)
				return -ESRCH;
			continue;
		}
		/* The kernel cuts a read at the first missing page; the next call fails with EFAULT. */
		if (n < 0)
			return errno == EINVAL ? -EFAULT : -errno;
		if (n == 0)
			return -EFAULT;
		done += n;
	}
	return 0;
}
