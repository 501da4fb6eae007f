// SPDX-License-Identifier: Apache-2.0
/* Counts what threads did in an interval. */
#include "top/threads.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/beyond.h"
#include "base/clock.h"
#include "session/waits/schedstat.h"
#include "session/waits/states.h"

#define NS_PER_S 1000000000ull

/* A thread at the end of the interval before. */
struct met_thread {
	int32_t pid, tid;
	uint64_t start; /* in the unit of who told it */
	uint64_t at_ns; /* CLOCK_BOOTTIME */
	struct procfs_sched sched;
	uint64_t ns[PYBPF_NR_STATES];
	uint32_t interval; /* in which it was met last */
};

/* Returns the thread as it was met before; *fresh: now. NULL without memory. */
static struct met_thread *meet(struct top_threads *t, pid_t pid, pid_t tid, uint64_t start, bool *fresh)
{
	const struct met_thread thread = {.pid = pid, .tid = tid, .start = start};
	uint32_t i = intern_add(&t->met, &thread, fresh);

	return i == INTERN_NONE ? NULL : intern_item(&t->met, i);
}

/* What a thread has done by the scheduler's counters since the interval before, or since it began. */
static struct top_states count_sched(const struct session_schedstat_thread *thread, const struct met_thread *before,
				     bool fresh, uint64_t interval_ns)
{
	uint64_t ticks_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t elapsed = beyond(thread->at_ns, fresh ? thread->start_ticks * ticks_ns : before->at_ns);
	uint64_t running = beyond(thread->sched.running_ns, before->sched.running_ns);
	uint64_t queued = beyond(thread->sched.queued_ns, before->sched.queued_ns);
	struct top_states states = {0};

	/* One that is met for the first time at the start had its counts before. */
	if (fresh && elapsed > interval_ns)
		return states;
	if (running > elapsed)
		running = elapsed;
	if (queued > elapsed - running)
		queued = elapsed - running;
	states.ns[PYBPF_STATE_RUNNING] = running;
	states.ns[PYBPF_STATE_QUEUED] = queued;
	states.ns[TOP_ASLEEP] = elapsed - running - queued;
	return states;
}

static int add_sched(const struct session_schedstat_thread *thread, void *arg)
{
	struct top_threads *t = arg;
	uint64_t interval_ns = (uint64_t)((clock_s(CLOCK_MONOTONIC) - t->since) * 1e9);
	struct top_states states;
	bool fresh;
	struct met_thread *met = meet(t, thread->pid, thread->tid, thread->start_ticks, &fresh);

	if (!met)
		return -ENOMEM;
	states = count_sched(thread, met, fresh, interval_ns);
	met->at_ns = thread->at_ns;
	met->sched = thread->sched;
	met->interval = top_model_intervals(t->model);
	return met->interval ? top_model_add_thread(t->model, thread->pid, thread->tid, thread->comm, &states) : 0;
}

static int add_states(const struct session_states_thread *thread, void *arg)
{
	struct top_threads *t = arg;
	struct top_states states = {0};
	bool fresh;
	struct met_thread *met = meet(t, thread->pid, thread->tid, thread->start_ms, &fresh);

	if (!met)
		return -ENOMEM;
	for (int i = 0; i < PYBPF_NR_STATES; i++)
		states.ns[i] = beyond(thread->ns[i], met->ns[i]);
	memcpy(met->ns, thread->ns, sizeof(met->ns));
	met->interval = top_model_intervals(t->model);
	if (!met->interval)
		return 0;
	return thread->lives ? top_model_add_thread(t->model, thread->pid, thread->tid, thread->name, &states)
			     : top_model_add_ended(t->model, &states);
}

/* Forgets the threads that have ended. */
static void forget_ended(struct top_threads *t)
{
	for (uint32_t i = t->met.count; i-- > 0;) {
		const struct met_thread *thread = intern_item(&t->met, i);

		if (thread->interval != top_model_intervals(t->model))
			intern_remove(&t->met, i);
	}
}

int top_threads_init(struct top_threads *t, struct session *session, struct top_model *model)
{
	*t = (struct top_threads){.session = session, .model = model};
	intern_init(&t->met, sizeof(struct met_thread), offsetof(struct met_thread, at_ns));
	return top_threads_add(t);
}

void top_threads_free(struct top_threads *t)
{
	intern_free(&t->met);
}

int top_threads_add(struct top_threads *t)
{
	int err = session_states_known(t->session) ? session_states_visit(t->session, add_states, t)
						   : session_schedstat_visit(t->session, add_sched, t);

	forget_ended(t);
	t->since = clock_s(CLOCK_MONOTONIC);
	return err;
}
