// SPDX-License-Identifier: Apache-2.0
/* Reads another process's memory with process_vm_readv(2). */
#include "base/remote.h"

#include <errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "base/procfs.h"
#include "base/process_source.h"

static int (*reader)(pid_t pid, uint64_t addr, void *buf, size_t size);

void remote_read_by(int (*read)(pid_t pid, uint64_t addr, void *buf, size_t size))
{
	reader = read;
}

int remote_read(pid_t pid, uint64_t addr, void *buf, size_t size)
{
	const struct process_source *source = process_source_of(pid);
	size_t done = 0;
	pid_t task = pid;

	if (reader)
		return reader(pid, addr, buf, size);
	if (source)
		return source->read(source->of, addr, buf, size);
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

int remote_read_parts(pid_t pid, const struct iovec *parts, size_t count, void *buf)
{
	size_t at = 0;

	while (count) {
		size_t nr = count < IOV_MAX ? count : IOV_MAX, size = 0;
		struct iovec local = {.iov_base = (char *)buf + at};
		int err = 0;

		for (size_t i = 0; i < nr; i++)
			size += parts[i].iov_len;
		local.iov_len = size;
		/* One by one where they are not a living process's, its first thread has ended, or a page is missing.
		 */
		if (reader || process_source_of(pid) ||
		    process_vm_readv(pid, &local, 1, parts, nr, 0) != (ssize_t)size) {
			for (size_t i = 0, to = at; i < nr && !err; to += parts[i++].iov_len)
				err = remote_read(pid, (uintptr_t)parts[i].iov_base, (char *)buf + to,
						  parts[i].iov_len);
		}
		if (err)
			return err;
		at += size;
		parts += nr;
		count -= nr;
	}
	return 0;
}
