// SPDX-License-Identifier: Apache-2.0
/* Finds the thread of each greenlet, and keeps their stacks. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "dump/dump.h"
#include "dump/greenlets.h"
#include "helper/helper.h"
#include "symbols/stacks.h"

struct reading {
	const struct dump_greenlets_of *of;
	const struct dump_greenlets_to *to;
	const struct dump_thread *thread; /* whose greenlets are read */
};

/* Returns the thread of a Python that has a greenlet's C stack, which lies below the thread's struct; NULL: none. */
static const struct dump_thread *find_thread_of(const struct reading *r, const struct dump_greenlet_found *greenlet)
{
	for (size_t i = 0; i < r->to->process->count; i++) {
		const struct dump_thread *thread = &r->to->process->threads[i];
		const struct dump_known *known = dump_known_by_tid(r->to->known, thread->inside);
		uint64_t inside = known ? thread->state.stack_pointer ?: known->thread_id : 0;

		if (known && known->runtime == r->to->runtime && known->states.count && !thread->is_missing &&
		    ((greenlet->is_first && thread->tid == r->of->pid) ||
		     (inside >= greenlet->map_begin && inside < greenlet->map_end)))
			return thread;
	}
	return NULL;
}

static int take_greenlet(void *arg, const struct dump_greenlet_read *read)
{
	const struct reading *r = arg;
	const struct dump_greenlets_to *to = r->to;
	struct dump_greenlets *all = &to->process->greenlets;
	struct dump_greenlet *greenlet;
	struct pybpf_stack_event *event;
	int err;

	if (read->changed) {
		all->changed++;
		return 0;
	}
	event = walk_stack_event(read->stack.frames, read->stack.depth, read->stack.flags, to->proc_id, to->runtime);
	if (!event)
		return 0;
	event->stack_id = ++*to->last_stack_id;
	event->rights = to->rights;
	err = stacks_add(to->stacks, event, event->event.size);
	free(event);
	if (err || array_reserve(&all->items, &all->room, all->count + 1, sizeof(*all->items)))
		return -ENOMEM;
	greenlet = &all->items[all->count++];
	*greenlet = read->greenlet;
	greenlet->tid = r->thread->tid;
	greenlet->stack_id = *to->last_stack_id;
	return 0;
}

/* Notes that a part could not be read. The first reason is the one to tell. */
static void note_unread(struct dump_process *process, int err)
{
	process->incomplete = process->incomplete ?: err;
}

/* Reads as many of the greenlets as are of the same thread. Returns how many, or -ENOMEM or -EINTR. */
static ssize_t read_some(struct reading *r, const struct dump_greenlet_found *found, size_t left)
{
	struct dump_process *process = r->to->process;
	const struct dump_known *known;
	size_t count = 1;
	int err;

	while (count < left && count < DUMP_GREENLETS_BATCH && found[count].map_begin == found->map_begin)
		count++;
	r->thread = find_thread_of(r, found);
	known = r->thread ? dump_known_by_tid(r->to->known, r->thread->inside) : NULL;
	if (!known)
		return (ssize_t)count;
	err = dump_read_greenlets(r->of, found, count, known->thread_id, &known->states, take_greenlet, r);
	if (err == -ENOMEM || err == -EINTR)
		return err;
	if (err) {
		note_unread(process, err);
		process->greenlets.changed += count;
	}
	return (ssize_t)count;
}

int dump_collect_greenlets(const struct dump_greenlets_of *of, const struct dump_greenlets_to *to)
{
	struct reading reading = {.of = of, .to = to};
	struct dump_process *process = to->process;
	struct dump_greenlet_found *found;
	size_t count;
	ssize_t read = 0;
	bool beyond = false;
	int err = dump_find_greenlets(of, &found, &count, &beyond);

	if (err && err != -EINTR && helper_has_no_answer(err))
		note_unread(process, err);
	process->greenlets.beyond = process->greenlets.beyond || beyond;
	for (size_t at = 0; !err && at < count && read >= 0; at += (size_t)read)
		read = read_some(&reading, found + at, count - at);
	free(found);
	if (err == -ENOMEM || err == -EINTR)
		return err;
	return read < 0 ? (int)read : 0;
}
