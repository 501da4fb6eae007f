// SPDX-License-Identifier: Apache-2.0
/*
 * Reads asyncio's tasks. A task counts as read when nothing of it changed meanwhile: either its thread shows that it
 * began no step of a task, or two readings of the task are equal.
 */
#include "symbols/tasks/task_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/tasks/task_reader.h"

/* Reads the names of the task and of those that await it, as bpf/task.bpf.h does for the one that runs. */
static void read_chain(struct task_reader *r, uint64_t object, struct task_read *out)
{
	const struct pybpf_asyncio *asyncio = &r->place->runtime.asyncio;

	for (int i = 0; i < PYBPF_TASK_STEPS && object; i++) {
		enum task_kind kind = task_look_at(r, object);
		uint64_t next = 0;
		uint8_t is_set = 1;

		out->objects = task_mix(out->objects, object);
		if (kind != TASK_KIND_FUTURE && out->nr_tasks == PYBPF_TASKS)
			break;
		if (kind == TASK_KIND_TASK || kind == TASK_KIND_FUTURE)
			next = task_pointer_at(r, object + asyncio->awaited_by);
		if (task_read_at(r, object + asyncio->awaited_by_is_set, &is_set, sizeof(is_set)))
			is_set = 1;
		if (kind == TASK_KIND_TASK)
			task_take_name(r, object, &out->tasks[out->nr_tasks++]);
		else if (kind != TASK_KIND_FUTURE)
			out->tasks[out->nr_tasks++] = (struct pybpf_task_name){.form = PYBPF_TASK_UNKNOWN};
		if (next && is_set) {
			out->flags |= PYBPF_TASKS_SEVERAL;
			return;
		}
		object = next;
	}
	if (object)
		out->flags |= PYBPF_TASKS_MORE;
}

/* Reads the task once; runs: its thread says that it runs it. Returns as task_read_coroutines() does. */
static int read_once(struct task_reader *r, const struct task_listed *listed, bool runs, struct task_read *out)
{
	uint64_t coro;
	int err = 0;

	walk_frames_begin(r->frames, &r->window_memory, &r->place->layout, &r->place->runtime, r->place->proc_id,
			  listed->interp);
	memset(out, 0, offsetof(struct task_read, frames));
	out->address = listed->task;
	out->fd = -1;
	out->tstate = listed->tstate;
	if (task_look_at(r, listed->task) != TASK_KIND_TASK)
		return -ENOENT;
	coro = task_pointer_at(r, listed->task + r->place->runtime.asyncio.task_coro);
	if (!coro)
		return -ENOENT;
	if (r->place->whole_tree)
		err = task_read_node(r, listed->task, out);
	else if (task_is_old(r))
		task_read_old_chain(r, listed->task, out);
	else
		read_chain(r, listed->task, out);
	if (!err)
		err = runs ? -EINPROGRESS : task_read_coroutines(r, coro, out);
	if (err != -EINPROGRESS || !r->place->whole_tree)
		return err;
	out->awaits = TASK_AWAITS_RUNS;
	return 0;
}

static bool is_same(const struct task_read *a, const struct task_read *b)
{
	return memcmp(a, b, offsetof(struct task_read, frames)) == 0 &&
	       memcmp(a->frames, b->frames, a->nr_frames * sizeof(*a->frames)) == 0;
}

/*
 * Returns whether a step of the task at any time between the two moments would show. A step enters a context, runs the
 * task, and leaves the context. So it cannot have begun since: the number would be another one. Nor can it have been
 * about to begin: then the thread was attached, and ran no task, as C code goes from the one to the other.
 */
static bool would_show(const struct task_moment *before, const struct task_moment *after)
{
	return before->known && after->known && before->contexts == after->contexts &&
	       before->running == after->running && (before->running || !(before->status & PYBPF_TSTATE_ACTIVE));
}

/* Reads the task until nothing can have changed meanwhile. Returns as read_once() does. */
static int read_task(struct task_reader *r, const struct task_listed *listed)
{
	for (int i = 0; i < TASK_ATTEMPTS; i++) {
		struct task_moment before = task_look_at_thread(r, listed->tstate), after;
		bool runs = before.known && before.running == listed->task;
		int err, again;

		if (runs && !r->place->whole_tree)
			return -EINPROGRESS;
		err = read_once(r, listed, runs, &r->read);
		after = task_look_at_thread(r, listed->tstate);
		if (would_show(&before, &after) && err != -EAGAIN) {
			r->read.contexts = after.contexts;
			if (would_show(&listed->since, &after))
				r->read.tree |= TASK_TREE_STEADY;
			return err;
		}
		again = read_once(r, listed, runs, &r->again);
		if (err == again && err != -EAGAIN && (err || is_same(&r->read, &r->again)))
			return err;
	}
	return -EAGAIN;
}

int task_reader_next(struct task_reader *r, const struct task_read **out, struct task_read_counts *counts)
{
	if (r->next == r->nr_listed)
		return -ENOENT;
	switch (read_task(r, &r->listed[r->next++])) {
	case 0:
		*out = &r->read;
		if (r->read.awaits == TASK_AWAITS_RUNS)
			counts->running++;
		else
			counts->suspended++;
		return 1;
	case -EINPROGRESS:
		counts->running++;
		return 0;
	case -ENOENT:
		counts->ended++;
		return 0;
	default:
		counts->moving++;
		return 0;
	}
}

struct task_reader *task_reader_new(void)
{
	struct task_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	intern_init(&r->types, sizeof(struct task_type), sizeof(uint64_t));
	r->frames = walk_frames_new();
	if (!r->frames) {
		task_reader_free(r);
		return NULL;
	}
	return r;
}

void task_reader_free(struct task_reader *r)
{
	if (!r)
		return;
	walk_frames_free(r->frames);
	task_peer_end(r);
	intern_free(&r->types);
	free(r->listed);
	free(r);
}
