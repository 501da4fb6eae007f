// SPDX-License-Identifier: Apache-2.0
/*
 * For how long did the machine stand still? On each CPU a process of the highest priority wakes every PERIOD_MS, and
 * adds up what it came too late by. A virtual machine's CPU that its host does not run takes no timer interrupts, and
 * the program that it was at is charged for the time. At the end of its input: one line, the sum over all CPUs in
 * seconds.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_MS 5
/* Less is how long the kernel itself may be busy. */
#define LATE_S 0.003

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double watch(int cpu, int end)
{
	const struct sched_param first = {.sched_priority = 50};
	struct pollfd input = {.fd = end, .events = POLLIN};
	double late = 0, last;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || sched_setscheduler(0, SCHED_FIFO, &first))
		return 0;
	last = now();
	while (poll(&input, 1, PERIOD_MS) == 0) {
		double time = now(), over = time - last - PERIOD_MS / 1e3;

		if (over > LATE_S)
			late += over;
		last = time;
	}
	return late;
}

int main(void)
{
	int end[2], results[2], cpus = 0;
	double sum = 0, one;
	cpu_set_t all;
	char c;

	if (sched_getaffinity(0, sizeof(all), &all) || pipe(end) || pipe(results))
		return 1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		cpus++;
		if (fork() == 0) {
			close(end[1]);
			one = watch(cpu, end[0]);
			_exit(write(results[1], &one, sizeof(one)) != sizeof(one));
		}
	}
	while (read(0, &c, 1) < 0 && errno == EINTR)
		;
	close(end[0]);
	close(end[1]);
	for (int i = 0; i < cpus; i++) {
		if (read(results[0], &one, sizeof(one)) == sizeof(one))
			sum += one;
	}
	while (wait(NULL) > 0)
		;
	printf("%.6f\n", sum);
	return 0;
}
