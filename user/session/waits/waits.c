// SPDX-License-Identifier: Apache-2.0
/* Gathers the time of threads from the kernel's maps. */
#include "session/waits/waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "kernel/waits.h"
#include "output/output.h"
#include "session/run/due.h"
#include "session/account/account_entry.h"
#include "session/internal.h"
#include "session/measure.h"
#include "session/waits/comm.h"
#include "session/waits/retained.h"
#include "session/waits/rolling.h"
#include "session/waits/take_part.h"
#include "session/waits/wait_profile.h"

struct idle_function {
	uint32_t frame; /* of the profile; PROFILE_NONE: no function */
	uint32_t threads;
};

static void init(struct session *s)
{
	struct session_waits *w = &s->waits;

	memset(w, 0, sizeof(*w));
	intern_init(&w->names, sizeof(struct session_named_wait), sizeof(uint64_t));
	intern_init(&w->idle, sizeof(struct idle_function), sizeof(uint32_t));
	session_initial_stacks_init(&w->initial_stacks);
	session_running_init(&w->running);
	session_intervals_init(&w->intervals);
	session_gil_init(&w->gil);
	session_wakers_init(&w->wakers);
}

static void release(struct session *s)
{
	struct session_waits *w = &s->waits;

	intern_free(&w->names);
	intern_free(&w->idle);
	session_initial_stacks_free(&w->initial_stacks);
	session_running_free(&w->running);
	session_intervals_free(&w->intervals);
	session_gil_free(&w->gil);
	session_wakers_free(&w->wakers);
	session_ahead_free(&w->ahead);
	session_parts_free(&w->undecided);
	free(w->threads);
	init(s);
}

/* Starts to keep the time of threads. */
static int attach(struct session *s)
{
	int err = kernel_attach_waits(s->kernel);

	if (err)
		return err;
	/* No time is from before this moment. */
	s->attach_ns = clock_ns(CLOCK_MONOTONIC);
	s->start_ns = clock_ns(CLOCK_REALTIME);
	kernel_start_waits(s->kernel, true);
	return 0;
}

struct settling {
	struct session *session;
	const struct session_due *due;
	uint64_t end_ns;     /* as session_find_end() tells it */
	struct intern moved; /* processes of which a thread has run */
	struct pybpf_wait_key *taken;
	size_t nr_taken, taken_room;
};

static int note_moved(const struct pybpf_thread *thread, void *arg)
{
	struct settling *settling = arg;
	bool fresh;

	if (!thread->moved && thread->state != PYBPF_STATE_RUNNING)
		return 0;
	return intern_add(&settling->moved, &thread->id.proc_id, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

/* Counts a thread that was asleep throughout by the function in which it was. */
static int note_idle(struct session *s, const struct pybpf_wait_key *key)
{
	uint32_t stack = session_wait_stack(s, key), i;
	struct idle_function idle = {.frame = PROFILE_NONE};
	bool fresh;

	if (stack == PROFILE_NONE)
		return -ENOMEM;
	idle.frame = profile_stack_at(s->profile, stack)->frame;
	i = intern_add(&s->waits.idle, &idle, &fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct idle_function *)intern_item(&s->waits.idle, i))->threads++;
	s->waits.idle_threads++;
	return 0;
}

/* Notes when a wait was that the end of the run cuts off. since_ns: in the kernel's clock. */
static int add_unfinished(const struct settling *settling, const struct pybpf_wait_key *key, uint64_t since_ns,
			  uint64_t ns)
{
	struct session *s = settling->session;

	if (!s->options.times)
		return 0;
	return session_intervals_add(&s->waits.intervals, key, since_ns + (s->detach_ns - settling->end_ns), ns);
}

static int take_time(const struct pybpf_wait_key *key, const struct pybpf_wait_time *time, void *arg)
{
	struct settling *settling = arg;
	int err;

	if (!session_is_due(settling->session, settling->due, key->thread.proc_id))
		return 0;
	err = session_waits_add_part(settling->session, &(struct session_part){*key, *time});
	if (err || !settling->due->before)
		return err;
	if (array_reserve(&settling->taken, &settling->taken_room, settling->nr_taken + 1, sizeof(*settling->taken)))
		return -ENOMEM;
	settling->taken[settling->nr_taken++] = *key;
	return 0;
}

/* Takes the time of a thread that is alive at the end of the run. */
static int take_living(const struct pybpf_thread *thread, void *arg)
{
	const uint64_t begins[SESSION_PRESENTS] = {[SESSION_PRESENT_GIL] = thread->gil_begin_ns,
						   [SESSION_PRESENT_STATE] = thread->since_ns,
						   [SESSION_PRESENT_READY] = thread->woken_ns};
	struct settling *settling = arg;
	struct session *s = settling->session;
	struct session_part present[SESSION_PRESENTS];
	int err = 0;

	if (!session_is_python(s, thread->id.proc_id))
		return 0;
	session_parts_of_thread(thread, settling->end_ns, s->options.min_block_ns, present);
	if (thread->state != PYBPF_STATE_RUNNING && !thread->moved && !s->options.idle_threads &&
	    intern_find(&settling->moved, &thread->id.proc_id) != INTERN_NONE)
		return note_idle(s, &present[SESSION_PRESENT_STATE].key);
	session_note_comm(s, thread);
	if (thread->state == PYBPF_STATE_GIL)
		session_gil_note_unfinished(&s->waits.gil, present[SESSION_PRESENT_STATE].time.longest_ns);
	for (int i = 0; i < SESSION_PRESENTS && !err; i++) {
		const struct session_part *part = &present[i];

		err = part->time.ns ? session_waits_add_part(s, part) : 0;
		if (!err && i != SESSION_PRESENT_RUNS && part->key.stack_id != PYBPF_STACK_ID_SHORT)
			err = add_unfinished(settling, &part->key, begins[i], part->time.ns);
	}
	return err;
}

/* At the end of the run also the time of threads that are alive. */
static int settle_whole(struct settling *settling)
{
	struct session *s = settling->session;
	int err = 0;

	if (settling->due->all)
		err = kernel_visit_threads(s->kernel, note_moved, settling);
	err = err ?: kernel_visit_wait_times(s->kernel, take_time, settling);
	if (settling->due->all)
		err = err ?: kernel_visit_threads(s->kernel, take_living, settling);
	return err;
}

static int settle(struct session *s, const struct session_due *due)
{
	struct settling settling = {.session = s, .due = due};
	int err = session_find_end(s, due, &settling.end_ns);

	intern_init(&settling.moved, sizeof(uint64_t), sizeof(uint64_t));
	if (!err)
		err = s->options.rolling ? session_waits_settle_part(s, due, settling.end_ns) : settle_whole(&settling);
	err = err ?: session_running_share(s, due);
	for (size_t i = 0; i < settling.nr_taken; i++)
		session_waits_forget_time(s, &settling.taken[i]);
	free(settling.taken);
	intern_free(&settling.moved);
	return err;
}

static void forget_frames(struct session *s)
{
	session_gil_forget_frames(&s->waits.gil);
}

/* Functions in which threads slept that are named. */
#define IDLE_NAMED 3

static int compare_idle(const void *a, const void *b)
{
	const struct idle_function *one = a, *other = b;

	return (one->threads < other->threads) - (one->threads > other->threads);
}

void session_count_states(const struct session *s, struct session_account *account)
{
	account->has_states = s->options.mode != SESSION_CPU;
	memcpy(account->state_ns, s->waits.state_ns, sizeof(account->state_ns));
	account->refused_stacks_ns = s->waits.refused_stacks_ns;
	account->unsent_stacks_ns = s->waits.unsent_stacks_ns;
	account->late_initial_stacks = s->waits.initial_stacks.late;
	account->unread_initial_ns = s->waits.initial_stacks.unread_ns;
	account->unread_names = s->thread_names.unread;
	if (account->has_states)
		kernel_get_lost_time(s->kernel, &account->lost_time_ns, &account->lost_threads);
}

static void tell(const struct session *s, struct session_account *account)
{
	const struct session_waits *w = &s->waits;
	struct idle_function *idle = w->idle.items;
	uint32_t others = w->idle_threads;
	size_t used = 0;

	session_count_states(s, account);
	account->idle_threads = w->idle_threads;
	if (w->idle.count)
		qsort(idle, w->idle.count, sizeof(*idle), compare_idle);
	for (uint32_t i = 0; i < w->idle.count && i < IDLE_NAMED && used < sizeof(account->idle_where); i++) {
		const char *name = profile_string(s->profile, profile_frame_at(s->profile, idle[i].frame)->name);

		used += (size_t)snprintf(account->idle_where + used, sizeof(account->idle_where) - used,
					 "%s%u in %.60s", i ? ", " : "", idle[i].threads, name);
		others -= idle[i].threads;
	}
	if (others && used < sizeof(account->idle_where))
		snprintf(account->idle_where + used, sizeof(account->idle_where) - used, " and %u in others", others);
}

static int take(struct session *s, const struct pybpf_event *event)
{
	if (event->type == PYBPF_EVENT_WAKER)
		return session_wakers_add(&s->waits.wakers, (const void *)event, event->size);
	return session_wait_add_name(&s->waits, (const void *)event, event->size);
}

/* Samples only say in which stacks a thread had its time on a CPU. */
static int add_count(struct session *s, const struct session_counted *counted)
{
	return session_running_add_samples(&s->waits.running, counted->key, counted->stack, counted->count->count);
}

static void describe(const struct session *s, const struct session_account *account, struct profile_measure *values)
{
	static const char *const names[] = {
		[SESSION_WALL] = "wall", [SESSION_OFFCPU] = "offcpu", [SESSION_GIL] = "gil"};

	(void)account;
	values->name = s->options.gil_holders ? "gil_holders" : names[s->options.mode];
	values->unit = PROFILE_UNIT_TIME;
}

static void end(struct session *s)
{
	kernel_start_waits(s->kernel, false);
}

static void detach(struct session *s)
{
	kernel_detach_waits(s->kernel);
}

static void print(const struct session_account *a, const struct profile *p, FILE *out)
{
	if (a->has_states)
		output_states(p, "pybpf: ", out);
	if (!a->idle_threads)
		return;
	fprintf(out,
		"pybpf: %" PRIu64 " thread%s slept throughout and %s left out (--idle keeps them): ", a->idle_threads,
		a->idle_threads == 1 ? "" : "s", a->idle_threads == 1 ? "is" : "are");
	text_print(a->idle_where, out);
	fputc('\n', out);
}

static const struct session_entry entries[] = {
	{"threads", "idle", SESSION_COUNT(idle_threads)},
	{0},
};

static void ask_kernel(const struct session_options *options, struct kernel_options *kernel)
{
	kernel->waits = true;
	kernel->threads = true;
	kernel->wait_detail = !options->no_wait_detail;
	kernel->min_block_ns = options->min_block_ns;
	kernel->wakers = options->wakers;
}

static bool is_wanted(const struct session_options *options)
{
	return options->mode != SESSION_CPU;
}

const struct session_measure session_waits_measure = {
	.name = "time of threads, whatever they do",
	.is_wanted = is_wanted,
	.ask_kernel = ask_kernel,
	.init = init,
	.free = release,
	.attach = attach,
	.end = end,
	.detach = detach,
	.records = SESSION_RECORD(PYBPF_EVENT_WAIT) | SESSION_RECORD(PYBPF_EVENT_WAKER),
	.take = take,
	.add_count = add_count,
	.describe = describe,
	.settle = settle,
	.in_epochs = true,
	.prepare_epoch = session_waits_read_threads,
	.forget_process = session_waits_forget_process,
	.keep_stacks = session_waits_keep_stacks,
	.forget_frames = forget_frames,
	.tell = tell,
	.print = print,
	.entries = entries,
};
