// SPDX-License-Identifier: Apache-2.0
/* Takes the records that the kernel sends: code objects, stacks, tasks and times of samples. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/events.h"
#include "pybpf.h"
#include "session/internal.h"

/* Most bytes taken per call: a program whose stacks are all new and deep fills the ring as fast as it is emptied. */
#define CONSUME_BYTES (256u << 10)
/*
 * Longest time of one call: objects that a code object refers to may have to be read from its process, while a process
 * that has just started is not sampled before it was looked at.
 */
#define CONSUME_NS 5000000

/* Returns 0 or negative errno. */
static int take(struct session *s, const struct pybpf_event *event)
{
	const struct session_measure *taker = session_measures_find_taker(event->type);

	if (session_is_of_next_epoch(&s->pending, event))
		return session_pending_add_record(&s->pending, event);
	if (taker)
		return taker->take(s, event);
	switch (event->type) {
	case PYBPF_EVENT_CODE:
		return pysym_add_code(s->pysym, (const void *)event, event->size);
	case PYBPF_EVENT_TASKS:
		return stacks_add_tasks(s->stacks, (const void *)event, event->size);
	default:
		return stacks_add(s->stacks, (const void *)event, event->size);
	}
}

/* Counts a record that is broken, or finds no memory: what it is about is missing, and nothing else. */
static void lose_record(struct session *s, int err)
{
	if (!s->lost_records++)
		log_warn("cannot keep a record that the kernel sent: %s; the run goes on without it", strerror(-err));
}

bool session_take_event(struct session *s, const struct pybpf_event *event)
{
	int err = take(s, event);

	if (err && err != -ENOENT)
		lose_record(s, err);
	return err != -ENOENT;
}

int session_on_record(void *ctx, void *data, size_t size)
{
	struct session *s = ctx;
	const struct pybpf_event *event = data;

	if (size < sizeof(*event) || event->size > size) {
		lose_record(s, -EBADMSG);
	} else if (!session_take_event(s, event)) {
		/* The event of its process is in the other buffer; if that was full, the stack is lost. */
		s->error = s->error ?: processes_consume_events(s->processes);
		session_take_event(s, event);
	}
	s->consumed += (uint32_t)size;
	return s->consumed < CONSUME_BYTES && clock_ns(CLOCK_MONOTONIC) < s->consume_until_ns ? 0 : -EAGAIN;
}

int session_consume(struct session *s)
{
	int n = processes_consume_events(s->processes);

	if (n)
		return n;
	s->consumed = 0;
	s->consume_until_ns = clock_ns(CLOCK_MONOTONIC) + CONSUME_NS;
	n = kernel_consume_events(s->kernel);
	if (s->error)
		return s->error;
	return n == -EAGAIN ? 1 : n;
}
