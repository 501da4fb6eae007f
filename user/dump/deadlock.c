// SPDX-License-Identifier: Apache-2.0
/* Finds threads that wait for each other in a circle. */
#include "dump/deadlock.h"

/* Returns whether the thread has slept since it was read. */
static bool sleeps_still(const struct dump_process *process, const struct dump_thread *thread)
{
	struct dump_state now;

	/* Who waits for a GIL wakes up each 5 ms to ask for it; it does not go on while its holder sleeps. */
	if (thread->state.wait.state == PYBPF_STATE_GIL)
		return true;
	return !dump_read_state(process->row->process.pid, thread->tid, DUMP_GOES_ON, &now) &&
	       dump_is_same_sleep(&thread->state, &now);
}

/* Returns how many threads the circle has that leads from this one back to it; 0: there is none. */
static size_t count_circle(const struct dump_process *process, const struct dump_thread *from)
{
	const struct dump_thread *at = from;

	for (size_t count = 1; count <= process->count; count++) {
		at = dump_find_holder(process, at);
		if (!at || at == from)
			return at ? count : 0;
	}
	return 0;
}

static bool is_proved(const struct dump_process *process, const struct dump_thread *from, size_t count)
{
	const struct dump_thread *at = from;
	size_t gil = 0;

	for (size_t i = 0; i < count; i++) {
		if (!sleeps_still(process, at))
			return false;
		gil += at->state.wait.state == PYBPF_STATE_GIL;
		at = dump_find_holder(process, at);
	}
	return gil < count;
}

void dump_find_deadlocks(struct dump_process *process, bool stands)
{
	uint32_t circles = 0;

	for (size_t i = 0; i < process->count; i++) {
		struct dump_thread *from = &process->threads[i], *at = from;
		size_t count = from->circle ? 0 : count_circle(process, from);

		if (!count || !(stands || is_proved(process, from, count)))
			continue;
		circles++;
		for (size_t k = 0; k < count; k++) {
			const struct dump_thread *next = dump_find_holder(process, at);

			at->circle = circles;
			at = &process->threads[next - process->threads];
		}
	}
}
