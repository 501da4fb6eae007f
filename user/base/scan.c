// SPDX-License-Identifier: Apache-2.0
/* Lists the processes in /proc. */
#include "base/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/procfs.h"

int scan_read_process(pid_t pid, struct scan_process *out)
{
	struct procfs_status status;
	struct procfs_stat stat;
	int err = procfs_read_stat(pid, &stat);

	if (!err)
		err = procfs_read_status(pid, &status);
	if (err)
		return err;
	*out = (struct scan_process){
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

int scan_each_process(int (*visit)(const struct scan_process *process, void *arg), void *arg, struct scan_count *count)
{
	struct scan_count ignored;
	struct scan_process process;
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	int ret = 0;

	if (!count)
		count = &ignored;
	*count = (struct scan_count){0};
	if (!proc)
		return -errno;
	/* The kernel lists processes by number. */
	while (!ret && (errno = 0, entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end || pid <= 0 || pid > INT32_MAX)
			continue;
		ret = scan_read_process(pid, &process);
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

/* A process and its parent. */
struct kinship {
	uint32_t pid, parent;
	bool below;
};

struct kin {
	struct kinship *items;
	size_t count, room;
};

static int add_kin(const struct scan_process *process, void *arg)
{
	struct kin *kin = arg;

	if (process->ended)
		return 0;
	if (array_reserve(&kin->items, &kin->room, kin->count + 1, sizeof(*kin->items)))
		return -ENOMEM;
	kin->items[kin->count++] = (struct kinship){.pid = (uint32_t)process->pid, .parent = (uint32_t)process->ppid};
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct kinship *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool has_number(const uint32_t *numbers, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++) {
		if (numbers[i] == number)
			return true;
	}
	return false;
}

/* Returns whether the parent is one of the given processes, or known to descend from them. */
static bool parent_is_one(const struct kin *kin, const struct kinship *one, const uint32_t *pids, size_t count)
{
	const struct kinship key = {.pid = one->parent}, *parent;

	if (has_number(pids, count, one->parent))
		return true;
	parent = bsearch(&key, kin->items, kin->count, sizeof(key), by_pid);
	return parent && parent->below;
}

int scan_find_below(const uint32_t *pids, size_t count, uint32_t **below, size_t *below_count)
{
	struct kin kin = {0};
	size_t found = 0, before;
	uint32_t *numbers;
	int err = scan_each_process(add_kin, &kin, NULL);

	if (kin.count)
		qsort(kin.items, kin.count, sizeof(*kin.items), by_pid);
	numbers = err ? NULL : calloc(kin.count + 1, sizeof(*numbers));
	if (!numbers) {
		free(kin.items);
		return err ?: -ENOMEM;
	}
	do {
		before = found;
		for (size_t i = 0; i < kin.count; i++) {
			struct kinship *one = &kin.items[i];

			if (one->below || has_number(pids, count, one->pid) || !parent_is_one(&kin, one, pids, count))
				continue;
			one->below = true;
			numbers[found++] = one->pid;
		}
	} while (found > before);
	free(kin.items);
	*below = numbers;
	*below_count = found;
	return 0;
}

void scan_read_cmdline(pid_t pid, char *buf, size_t size)
{
	ssize_t len = procfs_read_some(procfs_task(pid, NULL) ?: pid, "cmdline", buf, size);

	if (len < 0)
		len = 0;
	/* A program that sets its title leaves blanks or NULs behind it, to the former end. */
	while (len && (buf[len - 1] == '\0' || buf[len - 1] == ' '))
		len--;
	buf[len] = '\0';
	for (ssize_t i = 0; i < len; i++)
		if (!buf[i])
			buf[i] = ' ';
}
