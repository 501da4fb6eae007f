// SPDX-License-Identifier: Apache-2.0
/* Finds the tasks of a process in the lists that threads and interpreters have of them (3.14+). */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "symbols/current_tasks.h"
#include "symbols/task_reader.h"

/* Interpreters of a runtime, and thread states of all of them, that are visited. */
#define MAX_INTERPRETERS 1024
#define MAX_THREADS      PYBPF_MAX_THREADS

/* Bytes of a thread state that have all of it: a _PyThreadStateImpl has 1,104 in 3.15.2, and less than 900 in 3.14. */
#define MOMENT_BYTES 2048

struct task_moment task_look_at_thread(struct task_reader *r, uint64_t tstate)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint32_t running = r->place->runtime.asyncio.running_task, end = running + (uint32_t)sizeof(uint64_t);
	uint32_t contexts = l->tstate_datastack_top - PYBPF_CONTEXT_VER;
	struct task_moment moment = {0};
	uint8_t fields[MOMENT_BYTES];

	if (task_is_old(r))
		return task_look_at_old_thread(r, tstate);
	/* One read, so that it is one moment. */
	if (!tstate || l->tstate_datastack_top < PYBPF_CONTEXT_VER || contexts + sizeof(uint64_t) > end ||
	    l->tstate_status + sizeof(uint32_t) > end || end > sizeof(fields) ||
	    r->memory->read(r->memory->source, tstate, fields, end))
		return moment;
	memcpy(&moment.contexts, fields + contexts, sizeof(moment.contexts));
	memcpy(&moment.running, fields + running, sizeof(moment.running));
	memcpy(&moment.status, fields + l->tstate_status, sizeof(moment.status));
	moment.known = true;
	return moment;
}

struct links {
	uint64_t next, prev; /* struct llist_node (pycore_llist.h) */
};

int task_add_listed(struct task_reader *r, const struct task_listed *listed)
{
	if (r->nr_listed == TASK_READ_TASKS)
		return -E2BIG;
	if (array_reserve(&r->listed, &r->listed_room, r->nr_listed + 1, sizeof(*r->listed)))
		return -ENOMEM;
	r->listed[r->nr_listed++] = *listed;
	return 0;
}

static int add_listed(struct task_reader *r, uint64_t task, const struct task_listed *of)
{
	const struct task_listed listed = {task, of->tstate, of->interp, of->since};

	return task_add_listed(r, &listed);
}

/* Goes through a list once. Returns 0, -ENOMEM, -EAGAIN if the list changed meanwhile, -E2BIG. */
static int go_through(struct task_reader *r, uint64_t head, const struct task_listed *of)
{
	struct links links, next;
	uint64_t node = head;
	int err;

	if (task_read_at(r, head, &links, sizeof(links)))
		return -EAGAIN;
	/* A thread without asyncio may never have set up its list. */
	while (links.next != head && links.next) {
		if (task_read_at(r, links.next, &next, sizeof(next)) || next.prev != node)
			return -EAGAIN;
		err = add_listed(r, links.next - r->place->runtime.asyncio.task_node, of);
		if (err)
			return err;
		node = links.next;
		links = next;
	}
	return links.next || node == head ? 0 : -EAGAIN;
}

/*
 * Adds the task that the thread runs, if its list, from `begin` on, does not have it: an eager task is in none until it
 * first waits.
 */
static int add_running(struct task_reader *r, const struct task_listed *of, size_t begin)
{
	if (!r->place->whole_tree || !of->since.running)
		return 0;
	for (size_t i = begin; i < r->nr_listed; i++) {
		if (r->listed[i].task == of->since.running)
			return 0;
	}
	return add_listed(r, of->since.running, of);
}

/* Finds the tasks in a list: a thread's, or with 0 the interpreter's. */
static int find_in_list(struct task_reader *r, uint64_t head, uint64_t tstate, uint64_t interp,
			struct task_read_counts *counts)
{
	size_t begin = r->nr_listed;
	struct task_listed of = {.tstate = tstate, .interp = interp};
	int err = -EAGAIN;

	r->window_size = 0;
	for (int i = 0; i < TASK_ATTEMPTS && err == -EAGAIN; i++) {
		r->nr_listed = begin;
		of.since = task_look_at_thread(r, tstate);
		err = go_through(r, head, &of);
	}
	counts->torn += err == -EAGAIN;
	counts->beyond += err == -E2BIG;
	if (err != -ENOMEM)
		err = add_running(r, &of, begin);
	return err == -ENOMEM ? err : 0;
}

static int find_in_interpreter(struct task_reader *r, uint64_t interp, struct task_read_counts *counts)
{
	const struct pybpf_layout *l = &r->place->layout;
	const struct pybpf_asyncio *asyncio = &r->place->runtime.asyncio;
	uint64_t tstate = task_pointer_at(r, interp + l->interp_threads_head);
	int err = find_in_list(r, interp + asyncio->interp_tasks, 0, interp, counts);

	while (r->nr_threads < MAX_THREADS && tstate && !err) {
		r->nr_threads++;
		err = find_in_list(r, tstate + asyncio->thread_tasks, tstate, interp, counts);
		tstate = task_pointer_at(r, tstate + l->tstate_next);
	}
	return err;
}

int task_reader_find(struct task_reader *r, const struct walk_memory *memory, const struct task_read_place *place,
		     struct task_read_counts *counts)
{
	uint64_t interp;
	int err = 0;

	r->memory = memory;
	r->place = place;
	r->window_memory = (struct walk_memory){task_read_window, r};
	r->window_size = 0;
	r->nr_listed = 0;
	r->nr_threads = 0;
	r->next = 0;
	/* A type may be freed, and another one made at its address. */
	intern_free(&r->types);
	if (task_is_old(r)) {
		interp = pysym_main_interpreter(memory, &place->layout, place->runtime.interp_head);
		return task_find_old(r, interp, counts);
	}
	interp = task_pointer_at(r, place->runtime.interp_head);
	for (int i = 0; i < MAX_INTERPRETERS && interp && !err; i++) {
		err = find_in_interpreter(r, interp, counts);
		interp = task_pointer_at(r, interp + place->layout.interp_next);
	}
	return err;
}
