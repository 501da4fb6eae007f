// SPDX-License-Identifier: Apache-2.0
/* Finds the tasks of a process in the lists that threads and interpreters have of them (3.14+). */
#include <errno.h>
#include <string.h>

#include "symbols/tasks/current_tasks.h"
#include "symbols/tasks/task_reader.h"

/* Interpreters of a runtime, and thread states of all of them, that are visited. */
#define MAX_INTERPRETERS 1024
#define MAX_THREADS      PYBPF_MAX_THREADS

/* Bytes of a thread state that have all of it: a _PyThreadStateImpl has 1,104 in 3.15.2, and less than 900 in 3.14. */
#define MOMENT_BYTES 2048

struct task_moment task_look_at_thread(struct task_reader *r, uint64_t tstate)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint32_t running = r->place->runtime.asyncio.running_task, end = running + (uint32_t)sizeof(uint64_t);
	uint32_t contexts = l->tstate_contexts;
	struct task_moment moment = {0};
	uint8_t fields[MOMENT_BYTES];

	if (task_is_old(r))
		return task_look_at_old_thread(r, tstate);
	/* One read, so that it is one moment. */
	if (!tstate || !contexts || contexts + sizeof(uint64_t) > end || l->tstate_status + sizeof(uint32_t) > end ||
	    end > sizeof(fields) || r->memory->read(r->memory->source, tstate, fields, end))
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

/* Goes through a list once. Returns 0, -ENOMEM, -EAGAIN if the list changed meanwhile, -E2BIG. */
static int go_through(struct task_reader *r, uint64_t head, uint64_t interp)
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
		err = task_add_listed(r, interp, links.next - r->place->runtime.asyncio.task_node);
		if (err)
			return err;
		node = links.next;
		links = next;
	}
	return links.next || node == head ? 0 : -EAGAIN;
}

/* Finds the tasks in a thread's list, of the tasks that it made, or in an interpreter's, of those of ended threads. */
static int find_in_list(struct task_reader *r, uint64_t head, uint64_t interp, struct task_read_counts *counts)
{
	size_t begin = r->nr_listed;
	int err = -EAGAIN;

	r->window_size = 0;
	for (int i = 0; i < TASK_ATTEMPTS && err == -EAGAIN; i++) {
		r->nr_listed = begin;
		err = go_through(r, head, interp);
	}
	counts->torn += err == -EAGAIN;
	counts->beyond += err == -E2BIG;
	return err == -ENOMEM ? err : 0;
}

static int find_in_interpreter(struct task_reader *r, uint64_t interp, struct task_read_counts *counts)
{
	const struct pybpf_layout *l = &r->place->layout;
	const struct pybpf_asyncio *asyncio = &r->place->runtime.asyncio;
	uint64_t tstate = task_pointer_at(r, interp + l->interp_threads_head);
	int err = find_in_list(r, interp + asyncio->interp_tasks, interp, counts);

	while (r->nr_threads < MAX_THREADS && tstate && !err) {
		r->nr_threads++;
		err = find_in_list(r, tstate + asyncio->thread_tasks, interp, counts);
		tstate = task_pointer_at(r, tstate + l->tstate_next);
	}
	return err;
}

static int find_loops(struct task_reader *r, uint64_t interp, struct task_read_counts *counts)
{
	const struct pybpf_layout *l = &r->place->layout;
	uint64_t tstate = task_pointer_at(r, interp + l->interp_threads_head);

	for (; tstate && r->nr_threads < MAX_THREADS; r->nr_threads++) {
		uint64_t loop = task_pointer_at(r, tstate + r->place->runtime.asyncio.running_loop);

		if (loop && !task_add_loop(r, interp, tstate, loop)) {
			counts->beyond++;
			break;
		}
		tstate = task_pointer_at(r, tstate + l->tstate_next);
	}
	return 0;
}

/* Calls find with each interpreter until it returns an error. */
static int each_interpreter(struct task_reader *r, struct task_read_counts *counts,
			    int (*find)(struct task_reader *r, uint64_t interp, struct task_read_counts *counts))
{
	uint64_t interp = task_pointer_at(r, r->place->runtime.interp_head);
	int err = 0;

	r->nr_threads = 0;
	for (int i = 0; i < MAX_INTERPRETERS && interp && !err; i++) {
		err = find(r, interp, counts);
		interp = task_pointer_at(r, interp + r->place->layout.interp_next);
	}
	return err;
}

static bool is_listed(const struct task_reader *r, uint64_t task)
{
	for (size_t i = 0; i < r->nr_listed; i++) {
		if (r->listed[i].task == task)
			return true;
	}
	return false;
}

/* Adds the tasks that threads run and that are in no list, as an eager task is until it first waits. */
static int add_running(struct task_reader *r, struct task_read_counts *counts)
{
	int err = 0;

	for (size_t i = 0; r->place->whole_tree && i < r->nr_loops && !err; i++) {
		const struct task_loop *loop = &r->loops[i];

		if (loop->since.running && !is_listed(r, loop->since.running))
			err = task_add_listed(r, loop->interp, loop->since.running);
	}
	counts->beyond += err == -E2BIG;
	return err == -ENOMEM ? err : 0;
}

int task_reader_find(struct task_reader *r, const struct walk_memory *memory, const struct task_read_place *place,
		     struct task_read_counts *counts)
{
	uint64_t interp;
	int err = 0;

	r->memory = memory;
	r->place = place;
	r->window_memory = (struct walk_memory){.read = task_read_window, .source = r};
	r->window_size = 0;
	task_peer_begin(r);
	r->nr_listed = 0;
	r->nr_loops = 0;
	r->next = 0;
	/* A type may be freed, and another one made at its address. */
	intern_free(&r->types);
	if (task_is_old(r)) {
		interp = pysym_main_interpreter(memory, &place->layout, place->runtime.interp_head);
		return task_find_old(r, interp, counts);
	}
	err = each_interpreter(r, counts, find_loops);
	for (size_t i = 0; i < r->nr_loops; i++)
		r->loops[i].since = task_look_at_thread(r, r->loops[i].tstate);
	return err ?: each_interpreter(r, counts, find_in_interpreter) ?: add_running(r, counts);
}
