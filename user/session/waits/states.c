// SPDX-License-Identifier: Apache-2.0
/*
 * Adds up the time of threads by state from the kernel's maps, which change meanwhile: a thread's map entry has the
 * state that it is in, another map the time of those that have ended. The threads are read, then the times, then the
 * threads again. What a thread's time lacks then is of a state that has ended in between: that in which it was at
 * first.
 */
#include "session/waits/states.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/beyond.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/procfs.h"
#include "kernel/waits.h"
#include "session/cpu_time.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/wanted.h"

/* Bytes of a name that are kept. */
#define NAME_ROOM 64
/* Most attempts to name a thread: when it is met first, its interpreter may not be known yet. */
#define NAME_LOOKS 3
/* Time for names in one reading; the next one goes on. */
#define NAMES_S 0.05

struct state_thread {
	struct pybpf_thread_key key;
	char comm[16];
	char name[NAME_ROOM];
	unsigned looks;               /* at its name */
	uint64_t first_ns, first_sum; /* when it was met, in the kernel's clock, and its time until then */
	uint64_t reported[PYBPF_NR_STATES];
	/* What one reading found: */
	uint64_t ended_ns[PYBPF_NR_STATES]; /* of states that have ended */
	struct pybpf_thread then, now;      /* at its start and its end */
	bool was, is;                       /* it was there at its start, and at its end */
};

static void init(struct session *s)
{
	struct session_states *states = &s->states;

	memset(states, 0, sizeof(*states));
	intern_init(&states->threads, sizeof(struct state_thread), sizeof(struct pybpf_thread_key));
}

static void release(struct session *s)
{
	struct session_states *states = &s->states;

	intern_free(&states->threads);
	free(states->ended);
	init(s);
}

/* Keeps what finds a thread's name in Python. */
static void note_found(const struct pybpf_thread_found *found, void *arg)
{
	struct session *s = arg;
	struct pybpf_thread thread;
	struct pybpf_thread_key key;

	if (kernel_get_thread(s->kernel, found->pid, &thread))
		return;
	key = thread.id;
	session_thread_names_note(s, &key, found->thread_id);
}

/* Starts to keep the time, if the kernel can. */
static int attach(struct session *s)
{
	int err;

	if (!kernel_has_states(s->kernel))
		return 0;
	err = kernel_attach_waits(s->kernel);
	if (err)
		return err;
	kernel_start_waits(s->kernel, true);
	s->states.on = true;
	return kernel_find_threads(s->kernel, note_found, s);
}

bool session_states_known(const struct session *s)
{
	return s->states.on;
}

/* Returns NULL without memory. */
static struct state_thread *add(struct session *s, struct pybpf_thread_key thread)
{
	const struct state_thread fresh = {.key = thread};
	bool is_fresh;
	uint32_t i = intern_add(&s->states.threads, &fresh, &is_fresh);

	return i == INTERN_NONE ? NULL : intern_item(&s->states.threads, i);
}

static void begin_reading(struct session *s)
{
	for (uint32_t i = 0; i < s->states.threads.count; i++) {
		struct state_thread *thread = intern_item(&s->states.threads, i);

		memset(thread->ended_ns, 0, sizeof(thread->ended_ns));
		thread->was = thread->is = false;
	}
	s->states.nr_ended = 0;
}

static int note_then(const struct pybpf_thread *thread, void *arg)
{
	struct state_thread *known = add(arg, thread->id);

	if (!known)
		return -ENOMEM;
	known->then = *thread;
	known->was = true;
	return 0;
}

static int note_now(const struct pybpf_thread *thread, void *arg)
{
	struct state_thread *known = add(arg, thread->id);

	if (!known)
		return -ENOMEM;
	known->now = *thread;
	known->is = true;
	return 0;
}

static int note_ended(const struct pybpf_wait_key *key, const struct pybpf_wait_time *time, void *arg)
{
	struct session *s = arg;
	struct state_thread *known = add(s, key->thread);

	if (!known)
		return -ENOMEM;
	known->ended_ns[PYBPF_WAIT_STATE_OF(key->wait_id)] += time->ns;
	if (known->was)
		return 0;
	if (array_reserve(&s->states.ended, &s->states.ended_room, s->states.nr_ended + 1, sizeof(*s->states.ended)))
		return -ENOMEM;
	s->states.ended[s->states.nr_ended++] = *key;
	return 0;
}

/* Adds the state that the thread is in, until now_ns. */
static void add_present(const struct pybpf_thread *thread, uint64_t now_ns, uint64_t ns[PYBPF_NR_STATES])
{
	uint64_t left = beyond(now_ns, thread->since_ns), queued = 0;

	ns[PYBPF_STATE_RUNNING] += thread->running_ns;
	ns[PYBPF_STATE_GIL] += thread->gil_ns;
	if (thread->state != PYBPF_STATE_RUNNING && !pybpf_state_is_ready(thread->state) &&
	    thread->woken_ns >= thread->since_ns)
		queued = beyond(now_ns, thread->woken_ns);
	ns[PYBPF_WAIT_STATE_OF(thread->ready_id)] += queued;
	ns[thread->state < PYBPF_NR_STATES ? thread->state : PYBPF_STATE_OTHER] += beyond(left, queued);
}

static uint64_t sum_of(const uint64_t ns[PYBPF_NR_STATES])
{
	uint64_t sum = 0;

	for (int i = 0; i < PYBPF_NR_STATES; i++)
		sum += ns[i];
	return sum;
}

static void name_thread(struct session *s, const struct processes_record *process, struct state_thread *thread)
{
	struct procfs_stat stat;

	if (thread->looks >= NAME_LOOKS)
		return;
	if (!procfs_read_task_stat(process->pid, (pid_t)thread->key.tid, &stat))
		snprintf(thread->comm, sizeof(thread->comm), "%.15s", stat.comm);
	/* In time for Python's name, too. */
	if (session_used_s() < s->thread_names.until_s)
		thread->looks++;
	snprintf(thread->name, sizeof(thread->name), "%s",
		 session_find_thread_name(s, process, &thread->key, thread->comm));
}

/* Brings what is counted of a thread up to now_ns. */
static void add_up(struct state_thread *thread, uint64_t now_ns)
{
	uint64_t ns[PYBPF_NR_STATES], sum;

	memcpy(ns, thread->ended_ns, sizeof(ns));
	if (thread->is)
		add_present(&thread->now, now_ns, ns);
	sum = sum_of(ns);
	if (!thread->first_ns) {
		thread->first_ns = now_ns;
		thread->first_sum = sum;
	} else if (thread->is && thread->was && thread->then.state < PYBPF_NR_STATES) {
		ns[thread->then.state] += beyond(thread->first_sum + (now_ns - thread->first_ns), sum);
	}
	for (int i = 0; i < PYBPF_NR_STATES; i++)
		thread->reported[i] = ns[i] > thread->reported[i] ? ns[i] : thread->reported[i];
}

/* Tells a thread. Returns 1 if it is to be forgotten, as it has ended; 0, or a negative errno of the visit. */
static int tell(struct session *s, struct state_thread *thread, uint64_t now_ns,
		int (*visit)(const struct session_states_thread *thread, void *arg), void *arg)
{
	const struct processes_record *process = processes_find_record(s->processes, thread->key.proc_id);
	struct session_states_thread out = {.tid = (pid_t)thread->key.tid,
					    .start_ms = thread->key.tid_start_ms,
					    .lives = thread->is || thread->was};
	int err;

	if (!process || process->state != PROCESSES_PYTHON || !process->wanted)
		return !thread->is && !thread->was;
	add_up(thread, now_ns);
	name_thread(s, process, thread);
	out.pid = process->pid;
	out.name = thread->name;
	memcpy(out.ns, thread->reported, sizeof(out.ns));
	err = visit(&out, arg);
	return err ?: !out.lives;
}

/* Deletes the times of threads that have ended. */
static void delete_ended(struct session *s)
{
	for (size_t i = 0; i < s->states.nr_ended; i++) {
		const struct pybpf_wait_key *key = &s->states.ended[i];
		const struct pybpf_thread_key of = key->thread;
		uint32_t at = intern_find(&s->states.threads, &of);

		if (at != INTERN_NONE && !((const struct state_thread *)intern_item(&s->states.threads, at))->is)
			kernel_delete_wait_time(s->kernel, key);
	}
}

int session_states_visit(struct session *s, int (*visit)(const struct session_states_thread *thread, void *arg),
			 void *arg)
{
	struct session_states *states = &s->states;
	struct host_clock_offsets offsets;
	uint64_t now_ns = 0;
	int err = host_read_clock_offsets(&offsets);

	begin_reading(s);
	session_note_wanted(s);
	session_thread_names_read_until(&s->thread_names, session_used_s() + NAMES_S);
	err = err ?: kernel_visit_threads(s->kernel, note_then, s);
	err = err ?: kernel_visit_wait_times(s->kernel, note_ended, s);
	if (!err)
		now_ns = (s->detach_ns ?: clock_ns(CLOCK_MONOTONIC)) - (uint64_t)offsets.monotonic;
	err = err ?: kernel_visit_threads(s->kernel, note_now, s);
	if (!err)
		delete_ended(s);
	for (uint32_t i = states->threads.count; i-- > 0 && err >= 0;) {
		err = tell(s, intern_item(&states->threads, i), now_ns, visit, arg);
		if (err > 0)
			intern_remove(&states->threads, i);
	}
	session_thread_names_read_until(&s->thread_names, HUGE_VAL);
	return err < 0 ? err : 0;
}

static void end(struct session *s)
{
	kernel_start_waits(s->kernel, false);
}

static void detach(struct session *s)
{
	kernel_detach_waits(s->kernel);
}

static void ask_kernel(const struct session_options *options, struct kernel_options *kernel)
{
	kernel->states = options->states;
}

static bool is_wanted(const struct session_options *options)
{
	return options->mode == SESSION_CPU && options->states;
}

const struct session_measure session_states_measure = {
	.name = "time of threads by state, beside CPU samples",
	.is_wanted = is_wanted,
	.ask_kernel = ask_kernel,
	.init = init,
	.free = release,
	.attach = attach,
	.end = end,
	.detach = detach,
};
