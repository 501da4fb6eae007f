// SPDX-License-Identifier: Apache-2.0
/* Which threads of a process have a GIL. */
#include <errno.h>
#include <stddef.h>

#include "base/intern.h"
#include "dump/collect.h"

/* Most searches for the holder of a GIL. */
#define ATTEMPTS 4

/* A thread that has been read, by its thread state. */
struct by_state {
	uint64_t tstate, gil;
	uint32_t index;
	uint32_t pad;
};

/* Returns the index of the thread that holds the GIL, which is the one that `thread` needs; -1: none that is known. */
static ssize_t find_holder(const struct dump_collector *c, const struct intern *states,
			   const struct dump_thread *thread)
{
	const struct dump_known *known = dump_find_known(c, thread);
	uint64_t holder = known ? walk_gil_holder(&c->memory, c->runtimes[known->runtime].layout, thread->gil) : 0;

	const struct by_state key = {.tstate = holder, .gil = thread->gil};
	uint32_t at = holder ? intern_find(states, &key) : INTERN_NONE;
	const struct dump_thread *found;

	if (at == INTERN_NONE)
		return -1;
	at = ((const struct by_state *)intern_item(states, at))->index;
	found = &c->out->threads[at];
	/* It may have been read once more since. */
	return found->tstate == holder && found->gil == thread->gil ? (ssize_t)at : -1;
}

/*
 * Finds the holder of a GIL when all threads have been read. It changes hands all the time: a holder that waited for it
 * when it was read is read once more, until it holds it before and after.
 */
static int mark_holder(struct dump_collector *c, const struct intern *states, const struct dump_thread *needs)
{
	ssize_t holder = find_holder(c, states, needs);
	int err = 0;

	for (int i = 0; i < ATTEMPTS && holder >= 0 && !err; i++) {
		struct dump_thread *thread = &c->out->threads[holder];
		ssize_t now;

		if (thread->state.wait.state != PYBPF_STATE_GIL) {
			thread->has_gil = true;
			break;
		}
		err = dump_read_again(c, thread);
		now = find_holder(c, states, needs);
		thread->has_gil = now == holder && thread->state.wait.state != PYBPF_STATE_GIL;
		if (thread->has_gil)
			break;
		holder = now;
	}
	return err;
}

static int index_states(const struct dump_collector *c, struct intern *states)
{
	bool fresh;

	for (size_t i = 0; i < c->out->count; i++) {
		const struct dump_thread *thread = &c->out->threads[i];
		const struct by_state entry = {.tstate = thread->tstate, .gil = thread->gil, .index = (uint32_t)i};

		if (intern_add(states, &entry, &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

int dump_mark_gil_holders(struct dump_collector *c)
{
	struct intern gils = INTERN_INIT(sizeof(uint64_t), sizeof(uint64_t));
	struct intern states = INTERN_INIT(sizeof(struct by_state), offsetof(struct by_state, index));
	int err = index_states(c, &states);

	/* Every interpreter may have its own GIL, and a process that lies has one for each thread. */
	for (size_t i = 0; i < c->out->count && !err; i++) {
		const struct dump_thread *thread = &c->out->threads[i];
		bool fresh;

		if (!thread->gil)
			continue;
		err = intern_add(&gils, &thread->gil, &fresh) == INTERN_NONE ? -ENOMEM : 0;
		if (!err && fresh)
			err = mark_holder(c, &states, thread);
	}
	intern_free(&gils);
	intern_free(&states);
	return err;
}
