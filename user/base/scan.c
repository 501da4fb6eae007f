// SPDX-License-Identifier: Apache-2.0
/* Lists the processes in /proc. */
#include "base/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"
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

struct kin {
	struct scan_kinship *items;
	size_t count, room;
};

static int add_kin(const struct scan_process *process, void *arg)
{
	struct kin *kin = arg;

	if (process->ended)
		return 0;
	if (array_reserve(&kin->items, &kin->room, kin->count + 1, sizeof(*kin->items)))
		return -ENOMEM;
	kin->items[kin->count++] =
		(struct scan_kinship){.pid = (uint32_t)process->pid, .parent = (uint32_t)process->ppid};
	return 0;
}

/* Whether a process is below one of the given ones. */
enum kin_state {
	KIN_UNKNOWN,
	KIN_ON_WAY,
	KIN_BELOW,
	KIN_ELSEWHERE,
};

struct kin_search {
	struct intern processes; /* struct scan_kinship, by PID */
	struct intern given;     /* PIDs */
	uint8_t *states;         /* enum kin_state, of the processes */
	uint32_t *way;           /* indexes of a process and its ancestors, up to the first known one */
};

/* Goes from a process up to the first ancestor that is known: each process is passed once, in whatever order. */
static enum kin_state find_state(struct kin_search *k, uint32_t at)
{
	enum kin_state state = KIN_UNKNOWN;
	size_t len = 0;

	while (state == KIN_UNKNOWN) {
		const struct scan_kinship *one = intern_item(&k->processes, at);

		k->states[at] = KIN_ON_WAY;
		k->way[len++] = at;
		at = intern_find(&k->processes, &one->parent);
		if (intern_find(&k->given, &one->parent) != INTERN_NONE)
			state = KIN_BELOW;
		else
			state = at == INTERN_NONE ? KIN_ELSEWHERE : (enum kin_state)k->states[at];
	}
	/* Processes are listed one after the other: a PID that was used again can make a circle. */
	if (state == KIN_ON_WAY)
		state = KIN_ELSEWHERE;
	while (len)
		k->states[k->way[--len]] = (uint8_t)state;
	return state;
}

static int fill_search(struct kin_search *k, const struct scan_kinship *kin, size_t kin_count, const uint32_t *pids,
		       size_t count)
{
	bool fresh;

	for (size_t i = 0; i < kin_count; i++) {
		if (intern_add(&k->processes, &kin[i], &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		if (intern_add(&k->given, &pids[i], &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	k->states = calloc((size_t)k->processes.count + 1, sizeof(*k->states));
	k->way = calloc((size_t)k->processes.count + 1, sizeof(*k->way));
	return k->states && k->way ? 0 : -ENOMEM;
}

int scan_below_among(const struct scan_kinship *kin, size_t kin_count, const uint32_t *pids, size_t count,
		     uint32_t **below, size_t *below_count)
{
	struct kin_search k = {.processes = INTERN_INIT(sizeof(struct scan_kinship), sizeof(uint32_t)),
			       .given = INTERN_INIT(sizeof(uint32_t), sizeof(uint32_t))};
	uint32_t *numbers = calloc(kin_count + 1, sizeof(*numbers));
	int err = numbers ? fill_search(&k, kin, kin_count, pids, count) : -ENOMEM;
	size_t found = 0;

	for (uint32_t i = 0; i < k.processes.count && !err; i++) {
		const struct scan_kinship *one = intern_item(&k.processes, i);
		enum kin_state state = (enum kin_state)k.states[i];

		if (state == KIN_UNKNOWN)
			state = find_state(&k, i);
		if (state == KIN_BELOW && intern_find(&k.given, &one->pid) == INTERN_NONE)
			numbers[found++] = one->pid;
	}
	intern_free(&k.processes);
	intern_free(&k.given);
	free(k.states);
	free(k.way);
	if (err) {
		free(numbers);
		return err;
	}
	*below = numbers;
	*below_count = found;
	return 0;
}

int scan_find_below(const uint32_t *pids, size_t count, uint32_t **below, size_t *below_count)
{
	struct kin kin = {0};
	int err = scan_each_process(add_kin, &kin, NULL);

	err = err ?: scan_below_among(kin.items, kin.count, pids, count, below, below_count);
	free(kin.items);
	return err;
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
