// SPDX-License-Identifier: Apache-2.0
/* Takes the records that the kernel sends: code objects, stacks, tasks and times of samples. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/events.h"
#include "pybpf.h"
#include "session/internal.h"
#include "session/wait_profile.h"

/* Most bytes taken per call: a program whose stacks are all new and deep fills the ring as fast as it is emptied. */
#define CONSUME_BYTES (256u << 10)
/*
 * Longest time of one call: objects that a code object refers to may have to be read from its process, while a process
 * that has just started is not sampled before it was looked at.
 */
#define CONSUME_NS 5000000

static int take_time(struct session *s, const struct pybpf_event *event)
{
	if (session_may_keep_time(s))
		return session_times_add(&s->times, (const void *)event, event->size);
	s->counters[PYBPF_COUNT_UNTIMED]++;
	return 0;
}

int session_take_event(struct session *s, const struct pybpf_event *event)
{
	if (event->type == PYBPF_EVENT_THREAD)
		return session_thread_names_add(s, (const void *)event, event->size);
	if (session_must_wait(&s->carry, event))
		return session_put_aside(&s->carry, event);
	switch (event->type) {
	case PYBPF_EVENT_CODE:
		return pysym_add_code(s->pysym, (const void *)event, event->size);
	case PYBPF_EVENT_WAIT:
		return session_wait_add_name(&s->waits, (const void *)event, event->size);
	case PYBPF_EVENT_WAKER:
		return session_wakers_add(&s->waits.wakers, (const void *)event, event->size);
	case PYBPF_EVENT_TASKS:
		return stacks_add_tasks(s->stacks, (const void *)event, event->size);
	case PYBPF_EVENT_INTERVAL:
		return session_intervals_take(&s->waits.intervals, (const void *)event, event->size,
					      !session_may_keep_time(s));
	case PYBPF_EVENT_MEMORY:
		return session_held_take(&s->held, (const void *)event, event->size, !s->memory_full);
	case PYBPF_EVENT_TIME:
		return take_time(s, event);
	default:
		return stacks_add(s->stacks, (const void *)event, event->size);
	}
}

int session_on_record(void *ctx, void *data, size_t size)
{
	struct session *s = ctx;
	const struct pybpf_event *event = data;
	int err = 0;

	if (size < sizeof(*event) || event->size > size)
		return 0;
	err = session_take_event(s, event);
	if (err == -ENOENT) {
		/* The event of its process is in the other buffer; if that was full, the stack is lost. */
		err = processes_consume_events(s->processes) ?: session_take_event(s, event);
		if (err == -ENOENT)
			err = 0;
	}
	if (err && !s->error) {
		s->error = err;
		log_error("cannot keep what the kernel sent: %s", strerror(-err));
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
