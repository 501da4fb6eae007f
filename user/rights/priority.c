// SPDX-License-Identifier: Apache-2.0
/* Raises this process's priority, and restores it when the process uses much CPU time. */
#include "rights/priority.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "base/clock.h"

#define HIGHEST (-20)
/*
 * Interval in which the process may use more than half of a CPU: at the start, all files of the machine's Pythons have
 * to be analysed.
 */
#define WINDOW_NS 1000000000u
#define TASK_US   50000

static volatile sig_atomic_t raised;

void priority_raise(void)
{
	if (getpriority(PRIO_PROCESS, 0) == 0 && !setpriority(PRIO_PROCESS, 0, HIGHEST))
		raised = true;
}

void priority_restore(void)
{
	if (raised)
		setpriority(PRIO_PROCESS, 0, 0);
	raised = false;
}

void priority_check(void)
{
	static uint64_t begin_ns, used_ns;
	uint64_t now_ns, cpu_ns;

	if (!raised)
		return;
	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (now_ns - begin_ns < WINDOW_NS)
		return;
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (begin_ns && cpu_ns - used_ns > (now_ns - begin_ns) / 2)
		priority_restore();
	begin_ns = now_ns;
	used_ns = cpu_ns;
}

static void on_signal(int signo)
{
	(void)signo;
	priority_restore();
}

void priority_watch_begin(void)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGPROF, &action, NULL);
}

void priority_watch(void)
{
	const struct itimerval once = {.it_value.tv_usec = TASK_US};

	if (raised)
		setitimer(ITIMER_PROF, &once, NULL);
}
