// SPDX-License-Identifier: Apache-2.0
/* Tells what became of threads between two snapshots of their process. */
#include <stdlib.h>
#include <string.h>

#include "dump/dump.h"

/* Times that a sleeping thread leaves a CPU if it is stopped twice and let go between: to sleep anew, and to stop. */
#define SLEEPS_BY_STOPS 2

static const struct dump_thread *find(const struct dump_process *process, const struct dump_thread *thread)
{
	size_t count = 0, at = 0;

	if (process)
		at = dump_index_find(&process->index, DUMP_BY_TID, (uint64_t)thread->tid, &count);
	return count && process->threads[at].start_time == thread->start_time ? &process->threads[at] : NULL;
}

static bool is_asleep(const struct dump_thread *thread)
{
	return thread->state.wait.state != PYBPF_STATE_RUNNING;
}

static bool is_same_text(const struct dump_process *a, uint32_t i, const struct dump_process *b, uint32_t j)
{
	return !strcmp(profile_string(a->stacks, i), profile_string(b->stacks, j));
}

static bool is_same_frame(const struct dump_process *a, uint32_t i, const struct dump_process *b, uint32_t j)
{
	const struct profile_frame *x = profile_frame_at(a->stacks, i), *y = profile_frame_at(b->stacks, j);

	return x->kind == y->kind && x->line == y->line && x->first_line == y->first_line &&
	       is_same_text(a, x->name, b, y->name) && is_same_text(a, x->file, b, y->file);
}

static bool is_same_stack(const struct dump_process *a, uint32_t i, const struct dump_process *b, uint32_t j)
{
	while (i != PROFILE_ROOT && j != PROFILE_ROOT) {
		const struct profile_stack *x = profile_stack_at(a->stacks, i), *y = profile_stack_at(b->stacks, j);

		if (!is_same_frame(a, x->frame, b, y->frame))
			return false;
		i = x->parent;
		j = y->parent;
	}
	return i == j;
}

static bool is_same_cause(const struct dump_thread *a, const struct dump_thread *b)
{
	char one[DUMP_STATE_NAME], other[DUMP_STATE_NAME];

	dump_name_state(a, one, sizeof(one));
	dump_name_state(b, other, sizeof(other));
	return !strcmp(one, other);
}

enum dump_change dump_compare(const struct dump_process *before, const struct dump_process *now,
			      const struct dump_thread *thread)
{
	const struct dump_thread *was = find(before, thread);
	uint64_t stops, sleeps;

	if (!was)
		return DUMP_CHANGE_NEW;
	stops = (before->stood_s > 0 && now->stood_s > 0) || (was->was_stopped && thread->was_stopped) ? SLEEPS_BY_STOPS
												       : 0;
	if (was->unread || thread->unread)
		return DUMP_CHANGE_UNKNOWN;
	if (!is_same_stack(before, was->stack, now, thread->stack) || !is_same_cause(was, thread))
		return DUMP_CHANGE_MOVED;
	/* Who is stopped and goes on may be preempted on its way back to sleep. */
	sleeps = thread->state.sleeps - was->state.sleeps;
	return is_asleep(thread) && (!sleeps || sleeps == stops) ? DUMP_CHANGE_NONE : DUMP_CHANGE_SAME_PLACE;
}

size_t dump_count_ended(const struct dump_process *before, const struct dump_process *now)
{
	size_t count = 0;

	for (size_t i = 0; i < before->count; i++)
		count += !find(now, &before->threads[i]);
	return count;
}
