// SPDX-License-Identifier: Apache-2.0
/* What all reports of a process need, as text or JSON: states, holders of locks, who collects garbage. */
#include <stdio.h>
#include <stdlib.h>

#include "dump/dump.h"
#include "dump/print.h"

uint32_t *dump_frames(const struct dump_process *process, uint32_t stack, size_t *count)
{
	uint32_t *frames;
	size_t at = 0;

	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(process->stacks, s)->parent)
		at++;
	*count = at;
	frames = calloc(at + 1, sizeof(*frames));
	for (uint32_t s = stack; frames && s != PROFILE_ROOT; s = profile_stack_at(process->stacks, s)->parent)
		frames[--at] = profile_stack_at(process->stacks, s)->frame;
	return frames;
}

size_t dump_count_stacks(const struct dump_process *process)
{
	bool *met = calloc(profile_stack_count(process->stacks) + 1u, sizeof(*met));
	size_t count = 0;

	for (size_t i = 0; i < process->count; i++) {
		uint32_t stack = process->threads[i].stack;

		count += !met || !met[stack];
		if (met)
			met[stack] = true;
	}
	free(met);
	return count;
}

const char *dump_state_name(const struct dump_thread *thread)
{
	if (thread->state_unread)
		return "unknown";
	if (thread->state.wait.state != PYBPF_STATE_RUNNING)
		return session_state_name(thread->state.wait.state);
	if (thread->cpu == DUMP_CPU_UNKNOWN)
		return "running";
	return session_state_name(thread->cpu == DUMP_ON_CPU ? PYBPF_STATE_RUNNING : PYBPF_STATE_QUEUED);
}

void dump_name_state(const struct dump_thread *thread, char *out, size_t size)
{
	if (thread->state_unread || thread->state.wait.state == PYBPF_STATE_RUNNING)
		snprintf(out, size, "[%s]", dump_state_name(thread));
	else
		session_name_wait(&thread->state.wait, out, size);
}

const struct dump_thread *dump_find_holder(const struct dump_process *process, const struct dump_thread *thread)
{
	enum pybpf_state state = thread->state.wait.state;
	size_t holder, count;

	if (state == PYBPF_STATE_GIL)
		holder = dump_index_find(&process->index, DUMP_BY_GIL_HELD, thread->gil, &count);
	else if (state != PYBPF_STATE_LOCK)
		return NULL;
	else if (thread->locks.owner)
		holder = dump_index_find(&process->index, DUMP_BY_IDENT, thread->locks.owner, &count);
	else if (thread->locks.mutex_owner)
		holder = dump_index_find(&process->index, DUMP_BY_INSIDE, (uint64_t)thread->locks.mutex_owner, &count);
	else
		holder = dump_index_find(&process->index, DUMP_BY_LOCK_HELD, thread->locks.wanted, &count);
	/* Threads are read one after the other: a lock that two have had went from one to the other. */
	return count == 1 ? &process->threads[holder] : NULL;
}

const struct dump_thread *dump_find_unsure_holder(const struct dump_process *process, const struct dump_thread *thread)
{
	size_t holder, count;

	if (thread->state.wait.state != PYBPF_STATE_LOCK || dump_find_holder(process, thread))
		return NULL;
	holder = dump_index_find(&process->index, DUMP_BY_LOCK_UNSURE, thread->locks.wanted, &count);
	return count == 1 ? &process->threads[holder] : NULL;
}

const struct dump_thread *dump_find_joined(const struct dump_process *process, const struct dump_thread *thread)
{
	size_t joined, count;

	if (thread->state.wait.state != PYBPF_STATE_LOCK || !thread->locks.joins)
		return NULL;
	joined = dump_index_find(&process->index, DUMP_BY_IDENT, thread->locks.joins, &count);
	return count == 1 ? &process->threads[joined] : NULL;
}

const struct dump_thread *dump_find_awaited(const struct dump_process *process, const struct dump_thread *thread,
					    bool *joins)
{
	const struct dump_thread *holder = dump_find_holder(process, thread);

	if (joins)
		*joins = !holder;
	/* Who waits for a GIL sleeps for its switch interval, and then again. */
	if (thread->state.has_limit && thread->state.wait.state != PYBPF_STATE_GIL)
		return NULL;
	return holder ?: dump_find_joined(process, thread);
}

/* Returns whether no other thread can have set off the collection of which its interpreter tells. */
static bool is_only_one(const struct dump_process *process, const struct dump_thread *thread)
{
	size_t count;

	dump_index_find(&process->index, DUMP_BY_INTERPRETER, thread->facts.interp, &count);
	return count - thread->is_python == 0;
}

bool dump_collects(const struct dump_process *process, const struct dump_thread *thread, bool *known)
{
	enum pybpf_collection collection = thread->facts.collection;

	/*
	 * To 3.14 it is mostly the thread with the GIL, but one that collects lets go of the GIL in a finalizer that
	 * waits for something, for as long as that takes.
	 */
	*known = false;
	if (thread->is_python && thread->facts.is_interp_unsure && process->nr_interps > 1)
		return false;
	*known = collection == PYBPF_COLLECTION_SOMEBODYS
			 ? is_only_one(process, thread)
			 : collection != PYBPF_COLLECTION_UNKNOWN || !thread->is_python;
	return *known && (collection == PYBPF_COLLECTION_OWN || collection == PYBPF_COLLECTION_SOMEBODYS);
}

bool dump_is_collecting(const struct dump_process *process, bool *known)
{
	*known = true;
	for (size_t i = 0; i < process->count; i++) {
		const struct dump_thread *thread = &process->threads[i];

		if (thread->facts.collection > PYBPF_COLLECTION_NONE)
			return *known = true;
		if (thread->is_python && thread->facts.collection == PYBPF_COLLECTION_UNKNOWN)
			*known = false;
	}
	return false;
}

int dump_task_tid(const struct dump_process *process, const struct dump_task *task)
{
	size_t count, at = dump_index_find(&process->index, DUMP_BY_TSTATE, task->tstate, &count);

	return count ? process->threads[at].tid : 0;
}

bool dump_each_local(const struct dump_thread *thread, size_t position, dump_take_local *take, void *arg)
{
	uint32_t frame = position < thread->nr_numbers ? thread->numbers[position] : DUMP_NO_FRAME;
	struct dump_local local;
	bool any = false;

	for (size_t at = 0; frame != DUMP_NO_FRAME && dump_locals_next(&thread->locals, &at, &local);) {
		if (local.frame > frame)
			break;
		if (local.frame != frame)
			continue;
		take(arg, &local);
		any = true;
	}
	return any;
}
