// SPDX-License-Identifier: Apache-2.0
/*
 * /proc/PID/task/TID/stat has R for a thread that is on a CPU and for one that waits for one. What the scheduler counts
 * of a thread's time (schedstat) tells them apart, but is brought up to date at a tick only.
 */
#include "dump/on_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

/* Time between two looks, until all have run. */
#define STEP_NS 1000000ull
/* Beyond a tick: the ticks of two CPUs come one after the other. */
#define SLACK_NS 1000000ull

/* Returns whether the CPUs have ticks while a thread runs: those of nohz_full= have one a second. */
static bool cpus_tick(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/nohz_full", "re");
	int first = file ? fgetc(file) : '\n';

	if (file)
		fclose(file);
	/* The kernel writes "(null)" for an empty list that was never made. */
	return first == '\n' || first == '(' || first == EOF;
}

static uint64_t tick_ns(void)
{
	struct timespec tick;

	return clock_getres(CLOCK_MONOTONIC_COARSE, &tick)
		       ? 0
		       : (uint64_t)tick.tv_sec * 1000000000u + (uint64_t)tick.tv_nsec;
}

/* Returns whether the kernel counts the time of threads; one that does not says 0 of each (kernel.task_delayacct). */
static bool kernel_counts(void)
{
	struct procfs_sched own;

	return !procfs_read_sched(getpid(), getpid(), &own) && own.running_ns;
}

static bool is_ready(pid_t pid, const struct dump_thread *thread)
{
	struct procfs_stat stat;

	return !procfs_read_task_stat(pid, thread->tid, &stat) && stat.state == 'R';
}

/* A thread whose place is not known yet, and what it had run when the watch began. */
struct watched {
	struct dump_thread *thread;
	uint64_t running_ns;
};

static size_t begin(pid_t pid, struct dump_process *process, struct watched *watched)
{
	struct procfs_sched sched;
	size_t count = 0;

	for (size_t i = 0; i < process->count; i++) {
		struct dump_thread *thread = &process->threads[i];

		if (thread->state.wait.state == PYBPF_STATE_RUNNING && !thread->state.ended && is_ready(pid, thread) &&
		    !procfs_read_sched(pid, thread->tid, &sched))
			watched[count++] = (struct watched){thread, sched.running_ns};
	}
	return count;
}

/* Marks those that ran, and keeps the others. Returns how many these are. */
static size_t look(pid_t pid, struct watched *watched, size_t count)
{
	struct procfs_sched sched;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (procfs_read_sched(pid, watched[i].thread->tid, &sched))
			continue;
		if (sched.running_ns != watched[i].running_ns)
			watched[i].thread->cpu = DUMP_ON_CPU;
		else
			watched[kept++] = watched[i];
	}
	return kept;
}

void dump_tell_on_cpu(pid_t pid, struct dump_process *process)
{
	struct watched *watched = calloc(process->count + 1, sizeof(*watched));
	uint64_t tick = tick_ns(), until_ns;
	struct timespec step = {.tv_nsec = STEP_NS};
	size_t count;
	bool known;

	if (!watched)
		return;
	count = begin(pid, process, watched);
	until_ns = clock_ns(CLOCK_MONOTONIC) + tick + SLACK_NS;
	while (count && clock_ns(CLOCK_MONOTONIC) < until_ns) {
		nanosleep(&step, NULL);
		count = look(pid, watched, count);
	}
	known = count && cpus_tick() && kernel_counts();
	for (size_t i = 0; i < count && tick && known; i++) {
		if (is_ready(pid, watched[i].thread))
			watched[i].thread->cpu = DUMP_WAITS_FOR_CPU;
	}
	free(watched);
}
