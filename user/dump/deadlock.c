// SPDX-License-Identifier: Apache-2.0
/* Finds threads that wait for each other in a circle. */
#include "dump/deadlock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump/stack.h"

bool dump_sleeps_still(const struct dump_process *process, const struct dump_thread *thread)
{
	struct dump_state now;

	/* Who waits for a GIL wakes up each 5 ms to ask for it; it does not go on while its holder sleeps. */
	if (thread->state.wait.state == PYBPF_STATE_GIL)
		return true;
	return !dump_read_state(process->row->process.pid, thread->tid, &(struct dump_stop){.what = DUMP_NOT_STOPPED},
				&now) &&
	       dump_is_same_sleep(&thread->state, &now);
}

/*
 * Follows the threads that wait for each other from this one on, and notes in `met` when each was met. Returns how many
 * the circle has that begins anew at *from, the first of it that was met; 0: there is none, or it was met before.
 */
static size_t find_circle(const struct dump_process *process, uint32_t *met, uint32_t *clock,
			  const struct dump_thread **from)
{
	const uint32_t begin = *clock;
	const struct dump_thread *at = *from;

	while (at && !met[at - process->threads]) {
		met[at - process->threads] = ++*clock;
		at = dump_find_awaited(process, at, NULL);
	}
	if (!at || met[at - process->threads] <= begin)
		return 0;
	*from = at;
	return *clock - met[at - process->threads] + 1;
}

static bool is_proved(const struct dump_process *process, const struct dump_thread *from, size_t count)
{
	const struct dump_thread *at = from;
	size_t gil = 0;

	for (size_t i = 0; i < count; i++) {
		if (!dump_sleeps_still(process, at))
			return false;
		gil += at->state.wait.state == PYBPF_STATE_GIL;
		at = dump_find_awaited(process, at, NULL);
	}
	return gil < count;
}

/* Numbers the circles by their first threads, as they are printed. numbers: room for one of each thread. */
static void number_in_order(struct dump_process *process, uint32_t *numbers)
{
	uint32_t count = 0;

	memset(numbers, 0, (process->count + 1) * sizeof(*numbers));
	for (size_t i = 0; i < process->count; i++) {
		uint32_t *circle = &process->threads[i].circle;

		if (*circle && !numbers[*circle])
			numbers[*circle] = ++count;
		*circle = numbers[*circle];
	}
}

int dump_find_deadlocks(struct dump_process *process, bool stopped)
{
	uint32_t *met = calloc(process->count + 1, sizeof(*met)), clock = 0, circles = 0;

	if (!met)
		return -ENOMEM;
	for (size_t i = 0; i < process->count; i++) {
		const struct dump_thread *from = &process->threads[i];
		size_t count = find_circle(process, met, &clock, &from);

		if (!count || !(stopped || is_proved(process, from, count)))
			continue;
		circles++;
		for (size_t k = 0; k < count; k++) {
			process->threads[from - process->threads].circle = circles;
			from = dump_find_awaited(process, from, NULL);
		}
	}
	number_in_order(process, met);
	free(met);
	return 0;
}
