// SPDX-License-Identifier: Apache-2.0
#include "discovery_scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"

int discovery_describe(pid_t pid, struct discovery_process *out)
{
	struct procfs_status status;
	struct procfs_stat stat;
	int err = procfs_stat(pid, &stat);

	if (!err)
		err = procfs_status(pid, &status);
	if (err)
		return err;
	*out = (struct discovery_process){
		.pid = pid,
		.ppid = stat.ppid,
		.inside = status.inside,
		.start_time = stat.start_time,
		.uid = status.uid,
		.threads = stat.threads,
		.kernel_thread = stat.kernel_thread,
		.ended = !procfs_task(pid, &stat),
	};
	memcpy(out->comm, stat.comm, sizeof(out->comm));
	return 0;
}

int discovery_scan(int (*visit)(const struct discovery_process *process, void *arg), void *arg,
		   struct discovery_scan *count)
{
	struct discovery_scan ignored;
	struct discovery_process process;
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	int ret = 0;

	if (!count)
		count = &ignored;
	*count = (struct discovery_scan){0};
	if (!proc)
		return -errno;
	/* The kernel lists processes by number. */
	while (!ret && (errno = 0, entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end || pid <= 0 || pid > INT32_MAX)
			continue;
		ret = discovery_describe(pid, &process);
		if (!ret) {
			count->seen++;
			ret = visit(&process, arg);
			continue;
		}
		if (ret == -ESRCH)
			count->vanished++;
		else
			count->unreadable++;
		ret = 0;
	}
	if (!ret && errno)
		ret = -errno;
	closedir(proc);
	return ret;
}

void discovery_cmdline(pid_t pid, char *buf, size_t size)
{
	ssize_t len = procfs_read_some(procfs_task(pid, NULL) ?: pid, "cmdline", buf, size);

	if (len < 0)
		len = 0;
	/* A program that sets its title leaves blanks or NULs at the end of what was there before. */
	while (len && (buf[len - 1] == '\0' || buf[len - 1] == ' '))
		len--;
	buf[len] = '\0';
	for (ssize_t i = 0; i < len; i++)
		if (!buf[i])
			buf[i] = ' ';
}
