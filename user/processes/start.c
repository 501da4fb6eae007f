// SPDX-License-Identifier: Apache-2.0
/* The start of a run: claims the wanted processes and looks at those that exist already. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/scan.h"
#include "helper/helper.h"
#include "base/clock.h"
#include "base/log.h"
#include "pybpf.h"
#include "processes/internal.h"

static uint64_t ticks_per_s(void)
{
	return (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Claims the processes; adds to *fresh the number of those that the kernel did not know. */
static int claim_processes(const struct processes *p, const uint32_t *pids, size_t count, size_t *fresh)
{
	for (size_t i = 0; i < count; i++) {
		int err = kernel_claim_process(p->kernel, (pid_t)pids[i]);

		if (err && err != -EEXIST) {
			log_error("cannot hand process %u to the kernel: %s", pids[i], strerror(-err));
			return err;
		}
		*fresh += !err;
	}
	return 0;
}

/*
 * Longest delay of sampling: it begins after this time even if processes are still to be looked at. A machine with 300
 * processes takes a fifth of it.
 */
#define START_S 0.5

/* Rounds through /proc: each finds the processes that unclaimed ones started during the round before. */
#define CLAIM_ROUNDS 16

/* Claims the descendants that the processes have already. The kernel itself sees later forks of claimed processes. */
static int claim_children(const struct processes *p, const uint32_t *pids, size_t count)
{
	size_t below_count, fresh = 1;
	uint32_t *below;
	int err = 0;

	for (int round = 0; round < CLAIM_ROUNDS && fresh && !err; round++) {
		fresh = 0;
		err = scan_find_below(pids, count, &below, &below_count);
		if (err) {
			log_error("cannot list the processes in /proc: %s", strerror(-err));
			break;
		}
		err = claim_processes(p, below, below_count, &fresh);
		free(below);
	}
	return err;
}

int processes_follow(struct processes *p, const uint32_t *pids, size_t count)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	double next = 0, until;
	size_t fresh = 0;
	int err = claim_processes(p, pids, count, &fresh);

	p->begin = clock_ns(CLOCK_BOOTTIME) / (1000000000u / ticks_per_s());
	processes_begin_parents(p, pids, count);
	err = err ?: kernel_attach_watch(p->kernel);
	if (p->options.follow)
		err = err ?: claim_children(p, pids, count);
	err = err ?: kernel_find_processes(p->kernel);
	p->starting = true;
	until = clock_s(CLOCK_MONOTONIC) + START_S;
	while (!err && clock_s(CLOCK_MONOTONIC) < until &&
	       (next <= clock_s(CLOCK_MONOTONIC) || next <= p->busy_until) && !helper_is_interrupted()) {
		if (next > clock_s(CLOCK_MONOTONIC))
			nanosleep(&pause, NULL);
		processes_look_at_due(p, clock_s(CLOCK_MONOTONIC));
		err = processes_consume_events(p);
		next = processes_get_next_look(p);
	}
	p->starting = false;
	return err ?: p->error;
}
