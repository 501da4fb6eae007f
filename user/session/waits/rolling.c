// SPDX-License-Identifier: Apache-2.0
/* Takes the time of threads when an epoch ends, or when a process has ended meanwhile. */
#include "session/waits/rolling.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "kernel/waits.h"
#include "session/run/due.h"
#include "session/internal.h"
#include "session/waits/carry_over.h"
#include "session/waits/comm.h"
#include "session/waits/gil.h"
#include "session/waits/take_part.h"

struct settling {
	struct session *session;
	const struct session_due *due;
	struct session_ahead_news news;
	struct session_parts taken; /* to be removed from the kernel's map: of ended processes */
};

static void forget_threads(struct session_waits *w)
{
	free(w->threads);
	w->threads = NULL;
	w->nr_threads = w->threads_room = 0;
}

static int note_thread(const struct pybpf_thread *thread, void *arg)
{
	struct session *s = arg;
	struct session_waits *w = &s->waits;

	if (!session_is_python(s, thread->id.proc_id))
		return 0;
	if (array_reserve(&w->threads, &w->threads_room, w->nr_threads + 1, sizeof(*w->threads)))
		return -ENOMEM;
	w->threads[w->nr_threads++] = *thread;
	return 0;
}

int session_waits_read_threads(struct session *s)
{
	/* What changes before the epoch has ended is counted by the kernel's map of times, too. */
	forget_threads(&s->waits);
	return kernel_visit_threads(s->kernel, note_thread, s);
}

/* Returns whether it is not known yet whether the process runs a Python. */
static bool is_undecided(const struct session *s, uint64_t proc_id)
{
	const struct processes_record *process = processes_find_record(s->processes, proc_id);

	return process && process->state == PROCESSES_LOOKING && !process->ended;
}

static int keep_ended(struct settling *settling, const struct pybpf_wait_key *key, const struct pybpf_wait_time *time)
{
	struct session *s = settling->session;

	return session_parts_add(is_undecided(s, key->thread.proc_id) ? &s->waits.undecided : &settling->news.ended,
				 key, time);
}

/* Takes what is kept of processes that are decided by now, or have ended. */
static int take_decided(struct settling *settling)
{
	struct session *s = settling->session;
	struct session_parts all = s->waits.undecided;
	int err = 0;

	s->waits.undecided = (struct session_parts){0};
	for (size_t i = 0; i < all.count && !err; i++) {
		const struct session_part *part = &all.items[i];

		if (session_is_due(s, settling->due, part->key.thread.proc_id))
			err = keep_ended(settling, &part->key, &part->time);
		else
			err = session_parts_add(&s->waits.undecided, &part->key, &part->time);
	}
	session_parts_free(&all);
	return err;
}

static int take_time(const struct pybpf_wait_key *key, const struct pybpf_wait_time *time, void *arg)
{
	struct settling *settling = arg;
	int err;

	if (!session_is_due(settling->session, settling->due, key->thread.proc_id))
		return 0;
	err = keep_ended(settling, key, time);
	return err || !settling->due->before ? err : session_parts_add(&settling->taken, key, time);
}

static int tell_part(const struct session_part *part, void *arg)
{
	return session_waits_add_part(arg, part);
}

/* Takes over the threads that live. */
static int take_threads(struct settling *settling)
{
	struct session *s = settling->session;
	struct session_waits *w = &s->waits;
	/* The run has ended: nothing changes any more. */
	int err = settling->due->all ? session_waits_read_threads(s) : 0;

	session_ahead_sort(w->threads, w->nr_threads);
	for (size_t i = 0; i < w->nr_threads && !err; i++) {
		const struct pybpf_thread *thread = &w->threads[i];

		session_note_comm(s, thread);
		if (settling->due->all && thread->state == PYBPF_STATE_GIL)
			session_gil_note_unfinished(&w->gil,
						    thread->gil_waited_ns + settling->news.end_ns - thread->since_ns);
	}
	settling->news.threads = w->threads;
	settling->news.nr_threads = w->nr_threads;
	return err;
}

int session_waits_settle_part(struct session *s, const struct session_due *due, uint64_t end_ns)
{
	struct settling settling = {
		.session = s, .due = due, .news = {.end_ns = end_ns, .min_block_ns = s->options.min_block_ns}};
	int err = end_ns ? take_threads(&settling) : 0;

	err = err ?: take_decided(&settling);
	if (due->epoch)
		err = err ?: kernel_take_wait_times(s->kernel, take_time, &settling);
	else
		err = err ?: kernel_visit_wait_times(s->kernel, take_time, &settling);
	err = err ?: session_ahead_settle(&s->waits.ahead, &settling.news, tell_part, s);
	for (size_t i = 0; i < settling.taken.count; i++)
		session_waits_forget_time(s, &settling.taken.items[i].key);
	session_parts_free(&settling.taken);
	session_parts_free(&settling.news.ended);
	if (end_ns)
		forget_threads(&s->waits);
	return err;
}

void session_waits_forget_process(struct session *s, uint64_t proc_id)
{
	session_ahead_forget_process(&s->waits.ahead, proc_id);
}
