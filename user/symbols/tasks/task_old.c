// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the tasks of Python 3.7 to 3.13 as asyncio.all_tasks() does: in sets of the module _asyncio, most of them weak.
 * A task belongs to the thread that runs its loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/tasks/current_tasks.h"
#include "symbols/objects/py_dict.h"
#include "symbols/tasks/task_reader.h"

static uint64_t read_u64(const struct task_reader *r, uint64_t addr)
{
	uint64_t value;

	return r->memory->read(r->memory->source, addr, &value, sizeof(value)) ? 0 : value;
}

/* Whether the thread is attached: to 3.11 it then holds the GIL. */
static uint32_t status_of(const struct task_reader *r, uint64_t tstate)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint32_t status;

	if (!l->tstate_status)
		return read_u64(r, r->place->runtime.tstate_current) == tstate ? PYBPF_TSTATE_ACTIVE : 0;
	return r->memory->read(r->memory->source, tstate + l->tstate_status, &status, sizeof(status))
		       ? PYBPF_TSTATE_ACTIVE
		       : status;
}

struct task_moment task_look_at_old_thread(struct task_reader *r, uint64_t tstate)
{
	uint64_t contexts_at = tstate + r->place->layout.tstate_contexts;
	struct task_moment moment = {.known = false};

	for (size_t i = 0; tstate && i < r->nr_loops; i++) {
		const struct task_loop *loop = &r->loops[i];

		if (loop->tstate != tstate)
			continue;
		moment.contexts = read_u64(r, contexts_at);
		moment.running = pysym_current_task(r->memory, &r->place->layout,
						    r->place->runtime.asyncio.current_tasks, loop->loop);
		moment.status = status_of(r, tstate);
		/* Else a step began or ended between the reads. */
		moment.known = moment.contexts == read_u64(r, contexts_at);
		break;
	}
	return moment;
}

/* Finds the loops that threads of the interpreter run. */
static void find_loops(struct task_reader *r, uint64_t interp)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t tstate = read_u64(r, interp + l->interp_threads_head);

	r->nr_loops = 0;
	for (int i = 0; i < PYBPF_MAX_THREADS && tstate && r->nr_loops < TASK_LOOPS; i++) {
		uint64_t loop = pysym_running_loop(r->memory, l, r->place->runtime.asyncio.current_tasks, tstate);

		if (loop)
			task_add_loop(r, interp, tstate, loop);
		tstate = read_u64(r, tstate + l->tstate_next);
	}
	for (size_t i = 0; i < r->nr_loops; i++)
		r->loops[i].since = task_look_at_old_thread(r, r->loops[i].tstate);
}

struct filling {
	uint64_t interp;
	bool weak;
};

static int add_entry(struct task_reader *r, uint64_t key, void *arg)
{
	const struct filling *filling = arg;
	uint32_t head = task_head_size(r);
	uint64_t task = filling->weak ? read_u64(r, key + head + PYBPF_WEAKREF_OBJECT) : key;

	return task ? task_add_listed(r, filling->interp, task) : 0;
}

/* Adds the tasks of a set, or of a WeakSet. Returns 0, -ENOMEM, -EAGAIN if it changed meanwhile, -E2BIG. */
static int add_set(struct task_reader *r, uint64_t set, uint64_t interp)
{
	const struct py_reader py = {r->memory, &r->place->layout};
	struct filling filling = {.interp = interp};
	struct py_dict attributes;
	uint64_t data = set;

	if (py_open_attributes(&py, set, &attributes)) {
		filling.weak = true;
		if (!py_find_text(&py, &attributes, "data", &data))
			return -EAGAIN;
	}
	return task_read_set(r, data, TASK_READ_TASKS * 8ull, add_entry, &filling);
}

int task_find_old(struct task_reader *r, uint64_t interp, struct task_read_counts *counts)
{
	uint64_t sets[PYSYM_TASK_SETS];
	size_t count = pysym_find_all_tasks(r->memory, &r->place->layout, interp, sets);
	int err = 0;

	r->window_size = 0;
	find_loops(r, interp);
	for (size_t i = 0; i < count && err != -ENOMEM; i++) {
		size_t begin = r->nr_listed;

		err = -EAGAIN;
		for (int j = 0; j < TASK_ATTEMPTS && err == -EAGAIN; j++) {
			r->nr_listed = begin;
			err = add_set(r, sets[i], interp);
		}
		counts->torn += err == -EAGAIN;
		counts->beyond += err == -E2BIG;
	}
	return err == -ENOMEM ? err : 0;
}
