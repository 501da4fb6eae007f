// SPDX-License-Identifier: Apache-2.0
/* Asks for a look at a process: at its start, and when it has mapped something. */
#include <stdlib.h>

#include "base/clock.h"
#include "processes/internal.h"

/* A loader that splits a mapping makes further mappings: one look after this delay covers them all. */
#define SOON_S 0.01

void processes_look_again(struct processes *p, struct processes_record *process)
{
	if (!processes_is_sampled(process)) {
		processes_start_look(p, process, true);
		return;
	}
	process->look_further = true;
	processes_schedule_look(p, process, clock_s(CLOCK_MONOTONIC));
}

void processes_start_look(struct processes *p, struct processes_record *process, bool started)
{
	double now = clock_s(CLOCK_MONOTONIC);

	processes_clear_mismatch(process, ~0u);
	for (size_t i = 0; i < PYBPF_MAX_RUNTIMES; i++) {
		free(process->unproved[i]);
		process->unproved[i] = NULL;
	}
	process->nr_runtimes = 0;
	process->look_further = false;
	process->state = PROCESSES_LOOKING;
	process->look_since = started ? now : now - STARTING_S;
	if (started)
		p->starting_until = now + STARTING_S;
	/* A program that is known to load a Python has not loaded it yet: the event of its mapping will follow. */
	processes_schedule_look(p, process, started && process->kind == PYBPF_PROGRAM_LOADS ? now + STARTING_S : now);
}

void processes_look_soon(struct processes *p, struct processes_record *process)
{
	double now = clock_s(CLOCK_MONOTONIC);

	if (processes_is_sampled(process)) {
		process->look_further = true;
	} else {
		if (process->mismatched)
			return;
		if (process->state != PROCESSES_LOOKING)
			process->look_since = now - STARTING_S;
		process->state = PROCESSES_LOOKING;
	}
	processes_schedule_look(p, process, now + SOON_S);
}
