// SPDX-License-Identifier: Apache-2.0
/* What a process does now, and the CPU time that it has taken. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/procfs.h"
#include "base/process_source.h"

/* Most threads whose states are read. */
#define THREADS_MAX 1024

int procfs_each_task(pid_t pid, int (*visit)(pid_t tid, void *arg), void *arg)
{
	const struct process_source *source = process_source_of(pid);
	const struct dirent *entry;
	char path[64];
	int ret = 0;
	DIR *tasks;

	if (source)
		return source->each_task(source->of, visit, arg);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !ret && (entry = readdir(tasks))) {
		char *end;
		long tid = strtol(entry->d_name, &end, 10);

		if (!*end && tid > 0 && tid <= INT_MAX)
			ret = visit((pid_t)tid, arg);
	}
	if (tasks)
		closedir(tasks);
	return ret;
}

/* States of /proc/PID/stat (fs/proc/array.c), the most telling one first; others count as the last. */
static const char states[] = "RDtTS";

static size_t rank_state(char state)
{
	const char *found = strchr(states, state);

	return found && *found ? (size_t)(found - states) : sizeof(states);
}

struct most_telling {
	char state;
	int threads;
};

static int compare_state(pid_t tid, void *arg)
{
	struct most_telling *most = arg;
	struct procfs_stat stat;

	if (!procfs_read_stat(tid, &stat) && rank_state(stat.state) < rank_state(most->state))
		most->state = stat.state;
	return ++most->threads >= THREADS_MAX;
}

int procfs_read_state(pid_t pid, char *state)
{
	struct most_telling most = {0};
	struct procfs_stat stat;
	int err = procfs_read_stat(pid, &stat);

	if (err)
		return err;
	most.state = stat.state;
	if (stat.threads > 1)
		procfs_each_task(pid, compare_state, &most);
	*state = most.state;
	return 0;
}

int procfs_cpu_ns(pid_t pid, uint64_t *ns)
{
	struct timespec time;
	clockid_t clock;
	int err = clock_getcpuclockid(pid, &clock);

	if (err)
		return -err;
	if (clock_gettime(clock, &time))
		return -errno;
	*ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	return 0;
}
