// SPDX-License-Identifier: Apache-2.0
/* Reads the threads of a process: their states, stacks, and native frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "cpython/facts.h"
#include "dump/collect.h"
#include "dump/core.h"
#include "dump/native.h"
#include "dump/reading.h"
#include "dump/stack.h"
#include "dump/thread_locals.h"
#include "helper/helper.h"
#include "rights/priority.h"
#include "symbols/walk/page_cache.h"
#include "symbols/objects/thread_name.h"

/* Longest wait for threads to stop, all together, beside those that do: they stop when an uninterruptible sleep ends.
 */
#define STOP_PATIENCE_NS 1000000000ull
/* Most stops of one thread: its frames may lead through another file each time. */
#define STOPS_MAX 16

/* Returns the address of threading._active of the thread's interpreter, or 0. */
static uint64_t find_names(struct dump_collector *c, const struct dump_known *known)
{
	struct walk_memory memory = c->memory;
	struct page_cache *cache;

	if (c->names_interp == known->interp)
		return c->names;
	/* A search among all modules: hundreds of reads, of what hardly changes, each a question to a helper. */
	cache = page_cache_new(&c->memory);
	if (cache)
		page_cache_memory(cache, &memory);
	c->names_interp = known->interp;
	c->names = pysym_find_threads(&memory, c->runtimes[known->runtime].layout, known->interp);
	page_cache_free(cache);
	return c->names;
}

/* Replaces the thread's name by the one that Python has for it, if it has one. */
static int take_name(struct dump_thread *thread, const char *name)
{
	char *copy;

	if (!*name)
		return 0;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	free(thread->name);
	thread->name = copy;
	return 0;
}

static int keep_stack(struct dump_collector *c, const struct dump_known *known, struct dump_thread *thread,
		      const struct walk_stack *stack)
{
	struct pybpf_stack_event *event =
		walk_stack_event(stack->frames, stack->depth, stack->flags, DUMP_PROC_ID, known->runtime);
	int err;

	thread->gil = stack->gil;
	if (stack->wants_gil)
		thread->state.wait = (struct pybpf_wait){.state = PYBPF_STATE_GIL};
	thread->tstate = stack->tstate;
	thread->task = stack->task;
	thread->contexts = stack->contexts;
	if (!event)
		return 0;
	thread->stack_id = event->stack_id = ++c->last_stack_id;
	event->rights = c->sources.rights;
	err = stacks_add(c->stacks, event, event->event.size);
	if (!err && stack->task)
		err = dump_push_running(c->stacks, event, stack, &thread->task_stack);
	free(event);
	return err;
}

static struct dump_stop stop_of(const struct dump_collector *c, pid_t tid)
{
	if (c->core)
		return (struct dump_stop){.what = dump_core_stopped(c->core, tid)};
	return dump_stop_of(&c->freeze, tid);
}

static int read_state(struct dump_collector *c, struct dump_thread *thread)
{
	const struct dump_stop stop = stop_of(c, thread->tid);
	int err = dump_read_state(c->pid, thread->tid, &stop, &thread->state);

	switch (dump_judge_reading(err)) {
	case DUMP_READ:
		return 0;
	case DUMP_GONE:
		thread->state.ended = true;
		return 0;
	case DUMP_UNREAD:
		thread->unread = thread->unread ?: err;
		thread->state_unread = true;
		dump_note_unread(c, err);
		return 0;
	case DUMP_FAILED:
		break;
	}
	return err;
}

static int keep_python(struct dump_collector *c, const struct dump_known *known, struct dump_stack *stack,
		       struct dump_thread *thread)
{
	int err;

	thread->state = stack->state;
	thread->ident = known->thread_id;
	thread->locks = stack->locks;
	thread->facts = stack->facts;
	err = take_name(thread, stack->name) ?: keep_stack(c, known, thread, &stack->walk);
	dump_forget_locals(thread);
	if (!err && (c->locals.level || c->native))
		dump_keep_locals(thread, known->runtime, stack);
	return err;
}

static int read_python_thread(struct dump_collector *c, const struct dump_known *known, struct dump_thread *thread)
{
	struct dump_stack_of of = {
		.pid = c->pid,
		.tid = thread->tid,
		.thread_id = known->thread_id,
		.names = find_names(c, known),
		.stop = stop_of(c, thread->tid),
		.states = known->states,
		.locals = c->locals,
		.runtime = c->runtimes[known->runtime].place,
		.layout = *c->runtimes[known->runtime].layout,
	};
	bool again = thread->is_python;
	struct dump_stack stack;
	int err;

	of.all_stopped = (c->core || c->stopped) && of.stop.what != DUMP_NOT_STOPPED;
	of.states.exact = of.all_stopped;
	err = dump_read_stack(&of, &stack);
	thread->is_python = true;
	switch (dump_judge_reading(err)) {
	case DUMP_READ:
		err = keep_python(c, known, &stack, thread);
		break;
	case DUMP_GONE:
		thread->is_python = false;
		err = read_state(c, thread);
		break;
	case DUMP_UNREAD:
		dump_note_unread(c, err);
		thread->unread = again ? thread->unread : err;
		err = again ? 0 : read_state(c, thread);
		break;
	case DUMP_FAILED:
		break;
	}
	free(stack.walk.frames);
	free(stack.locals.bytes);
	return err;
}

void dump_mark_subinterpreters(struct dump_collector *c)
{
	for (size_t i = 0; i < c->out->count; i++) {
		struct dump_thread *thread = &c->out->threads[i];
		const struct dump_known *known = dump_find_known(c, thread);

		thread->in_subinterpreter = known && thread->is_python && thread->facts.interp &&
					    thread->facts.interp != c->known.main_interps[known->runtime];
	}
	c->out->nr_interps = c->known.nr_interps;
}

/*
 * Native frames that cannot be read are left out from this thread on, since another thread's would take as long or as
 * much memory: what is known of Python does not depend on them.
 */
static void leave_native_out(struct dump_collector *c, const struct dump_thread *thread, int err)
{
	c->native = false;
	dump_note_unread(c, err);
	log_warn("process %d: C functions are left out from thread %d on: %s", c->out->row->process.pid, thread->tid,
		 err == -ENOMEM ? "the symbols of its libraries leave a helper process no memory"
				: helper_describe_error(err));
}

static bool find_registers(const struct dump_collector *c, const struct dump_thread *thread,
			   struct unwind_registers *out)
{
	if (c->core)
		return dump_core_registers(c->core, thread->tid, out);
	return dump_registers_of(&c->freeze, thread->tid, out) ||
	       unwind_registers_at(thread->state.stack_pointer, thread->state.pc, out);
}

/* Returns whether the thread has slept since its state, and its stack, were read. */
static bool slept_since(const struct dump_collector *c, const struct dump_thread *thread)
{
	const struct dump_stop stop = {.what = DUMP_NOT_STOPPED};
	struct dump_state now;

	return !thread->facts.is_moving && !dump_read_state(c->pid, thread->tid, &stop, &now) && !now.ended &&
	       now.wait.state != PYBPF_STATE_RUNNING && now.sleeps == thread->state.sleeps &&
	       now.preemptions == thread->state.preemptions;
}

static const char *eval_loop_of(const struct dump_collector *c, const struct dump_known *known)
{
	const struct dump_collector_runtime *runtime = &c->runtimes[known ? known->runtime : 0];

	return runtime->layout ? cpython_facts(runtime->layout)->names->eval_loop : "";
}

/*
 * Reads the native frames of a thread that does not run. Returns whether they are all that can be known; else it has
 * none, since it runs, or its frames are found by registers that only a stop tells.
 */
static bool read_native(struct dump_collector *c, const struct dump_known *known, struct dump_thread *thread)
{
	struct unwind_registers registers;
	int err;

	dump_native_free(&thread->native);
	if (!find_registers(c, thread, &registers))
		return dump_is_stopped(c);
	err = dump_read_native(c->pid, c->native_moment, &registers, eval_loop_of(c, known), &thread->native);
	if (err) {
		leave_native_out(c, thread, err);
		return true;
	}
	if (!registers.is_partial || dump_is_stopped(c) || (thread->native.is_whole && slept_since(c, thread)))
		return true;
	dump_native_free(&thread->native);
	return false;
}

static int read_thread(struct dump_collector *c, const struct dump_known *known, struct dump_thread *thread)
{
	bool reads_stack = known && !thread->is_missing;
	int err = reads_stack ? read_python_thread(c, known, thread) : read_state(c, thread);

	/* Native frames of earlier threads may have taken all memory of the helper. */
	if (err == -ENOMEM && c->native) {
		dump_end_native();
		leave_native_out(c, thread, err);
		err = reads_stack ? read_python_thread(c, known, thread) : read_state(c, thread);
	}
	return err;
}

/* They have no native frames then. */
static void tell_not_stopped(struct dump_collector *c, int err)
{
	struct procfs_status status;
	bool traced = err == -EPERM && !procfs_read_status(c->pid, &status) && status.tracer;

	dump_note_unread(c, err);
	if (!c->cannot_stop)
		log_warn("process %d: C functions are left out of threads that cannot be stopped: %s",
			 c->out->row->process.pid,
			 traced          ? "another process traces them (a debugger?)"
			 : err == -EBUSY ? "they are in an uninterruptible sleep"
					 : strerror(-err));
	c->cannot_stop = true;
}

/* Finds the native frames of a thread that stands. *is_late: something has to be done first, when it runs again. */
static int find_native(struct dump_collector *c, const struct dump_thread *thread, bool *is_late)
{
	struct unwind_registers registers;

	if (!dump_registers_of(&c->freeze, thread->tid, &registers))
		return -ESRCH;
	return dump_find_native(c->pid, c->native_moment, &registers, is_late);
}

static void count_stop(struct dump_collector *c, struct dump_thread *thread, uint64_t stood_ns)
{
	c->out->stops.count += !thread->was_stopped;
	thread->was_stopped = true;
	if ((double)stood_ns / 1e9 > c->out->stops.longest_s)
		c->out->stops.longest_s = (double)stood_ns / 1e9;
}

/* What became of a thread that was stopped. */
enum stopped {
	STOPPED_FOUND, /* its native frames have been found */
	STOPPED_LATE,  /* something has to be done first */
	STOPPED_ELSE,  /* it has ended, or has no native frames */
};

/* Stops a thread, and reads it once more, with its native frames. */
static int stop_and_read(struct dump_collector *c, const struct dump_known *known, struct dump_thread *thread,
			 enum stopped *what)
{
	uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
	bool is_late = false;
	int err, found;

	*what = STOPPED_ELSE;
	err = dump_freeze_thread(c->pid, thread->tid, STOP_PATIENCE_NS - c->stop_timeout_ns, &c->freeze);
	if (err == -ESRCH)
		return read_thread(c, known, thread);
	if (err) {
		c->stop_timeout_ns += clock_ns(CLOCK_MONOTONIC) - before_ns;
		thread->native_unread = true;
		tell_not_stopped(c, err);
		return 0;
	}
	err = read_thread(c, known, thread);
	if (!err && c->native) {
		found = find_native(c, thread, &is_late);
		*what = is_late ? STOPPED_LATE : found ? STOPPED_ELSE : STOPPED_FOUND;
		if (found && found != -ESRCH)
			leave_native_out(c, thread, found);
	}
	count_stop(c, thread, dump_thaw(&c->freeze));
	return err;
}

/* Reads a thread that has to be stopped for its native frames: again after each thing that takes longer. */
static int read_stopped(struct dump_collector *c, const struct dump_known *known, struct dump_thread *thread)
{
	enum stopped what = STOPPED_LATE;
	int err = 0, native = 0;

	/* Even to let go of one that does not stop is waited for. */
	if (c->stop_timeout_ns >= STOP_PATIENCE_NS) {
		thread->native_unread = true;
		return 0;
	}
	dump_native_free(&thread->native);
	for (int i = 0; i < STOPS_MAX && what == STOPPED_LATE && !err && !native; i++) {
		err = stop_and_read(c, known, thread, &what);
		if (!err && what == STOPPED_LATE)
			native = dump_prepare_native(c->pid, c->native_moment);
	}
	if (!err && !native && what == STOPPED_FOUND)
		native = dump_name_native(c->pid, c->native_moment, eval_loop_of(c, known), &thread->native);
	if (native)
		leave_native_out(c, thread, native);
	thread->native_unread |= what == STOPPED_LATE;
	return err;
}

int dump_read_again(struct dump_collector *c, struct dump_thread *thread)
{
	const struct dump_known *known = dump_find_known(c, thread);
	int err = read_python_thread(c, known, thread);

	/* What is stopped has the native frames that it had. */
	if (err || !c->native || dump_is_stopped(c) || read_native(c, known, thread))
		return err;
	return read_stopped(c, known, thread);
}

/* Reads a thread as it is: one that runs has no native frames yet. */
static int read_first(struct dump_collector *c, struct dump_thread *thread)
{
	const struct dump_known *known = dump_find_known(c, thread);
	int err;

	priority_check();
	thread->is_missing = c->core && !dump_core_has_stack(c->core, thread->tid);
	thread->is_python = known && thread->is_missing;
	err = read_thread(c, known, thread);
	thread->native_due = !err && c->native && !thread->is_missing && !read_native(c, known, thread);
	thread->native_unread = c->out->with_native && !c->native && !thread->is_missing;
	if (c->frozen && thread->state.wait.state != PYBPF_STATE_RUNNING)
		thread->state.wait = (struct pybpf_wait){.state = PYBPF_STATE_STOPPED};
	return err;
}

int dump_read_threads(struct dump_collector *c)
{
	int err = 0;

	c->native_moment = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < c->out->count && !err; i++)
		err = read_first(c, &c->out->threads[i]);
	/* What tells of frames has been read for those that sleep by then: that takes longest. */
	for (size_t i = 0; i < c->out->count && !err; i++) {
		struct dump_thread *thread = &c->out->threads[i];

		if (!thread->native_due)
			continue;
		if (c->native)
			err = read_stopped(c, dump_find_known(c, thread), thread);
		thread->native_unread |= !c->native;
	}
	return err;
}
