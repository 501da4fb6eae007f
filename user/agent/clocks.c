// SPDX-License-Identifier: Apache-2.0
/*
 * Notices that the machine slept, or that its clock was set. Lengths of epochs are CLOCK_MONOTONIC's, which stands
 * still in a sleep, and their begins are CLOCK_REALTIME's: an epoch that went on would hold samples of times that it
 * does not claim.
 */
#include <math.h>

#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"

/* A difference of clocks that changes by no more seconds is left to corrections of the clock, which are slow. */
#define STEP_S 1.0
/* Clocks that are further apart than this were read around a sleep, or while pybpf had to wait. */
#define READING_S 0.1

void agent_read_clocks(struct agent_clocks *clocks)
{
	double begin, monotonic, real;

	do {
		begin = clock_s(CLOCK_BOOTTIME);
		monotonic = clock_s(CLOCK_MONOTONIC);
		real = clock_s(CLOCK_REALTIME);
	} while (clock_s(CLOCK_BOOTTIME) - begin > READING_S);
	*clocks = (struct agent_clocks){.slept_s = begin - monotonic, .booted_s = real - begin};
}

static void tell(double slept_s, double set_s)
{
	if (slept_s > STEP_S)
		log_warn("the machine slept for %.0f s: the epoch ends with what was sampled before", slept_s);
	if (fabs(set_s) > STEP_S)
		log_warn("the clock was set %s by %.0f s: the epoch ends with what was sampled before",
			 set_s > 0 ? "forward" : "back", fabs(set_s));
}

/* Once until an epoch may be cut again. */
static void tell_restless(struct agent *a)
{
	if (!a->is_restless)
		log_warn("the clock was set, or the machine slept, more than once in the length of an epoch: further "
			 "changes are counted, and the epoch goes on");
	a->is_restless = true;
}

bool agent_clocks_cut_epoch(struct agent *a)
{
	const struct agent_clocks before = a->clocks;
	const double now = clock_s(CLOCK_BOOTTIME);
	double slept_s, set_s;

	agent_read_clocks(&a->clocks);
	slept_s = a->clocks.slept_s - before.slept_s;
	set_s = a->clocks.booted_s - before.booted_s;
	a->metrics.suspends += slept_s > STEP_S;
	a->metrics.clock_jumps += fabs(set_s) > STEP_S;
	if (slept_s <= STEP_S && fabs(set_s) <= STEP_S)
		return false;
	if (now < a->next_cut) {
		tell_restless(a);
		return false;
	}
	tell(slept_s, set_s);
	a->next_cut = now + a->options.epoch_s;
	a->is_restless = false;
	return true;
}
