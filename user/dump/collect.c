// SPDX-License-Identifier: Apache-2.0
/* Reads the threads of a process, and who holds the GIL. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/remote.h"
#include "base/process_source.h"
#include "container/cgroup.h"
#include "cpython/facts.h"
#include "discovery/ask.h"
#include "dump/deadlock.h"
#include "dump/dump.h"
#include "dump/findings.h"
#include "dump/freeze.h"
#include "dump/identity.h"
#include "dump/idle.h"
#include "dump/on_cpu.h"
#include "dump/reading.h"
#include "dump/sources.h"
#include "dump/stack.h"
#include "dump/thread_locals.h"
#include "dump/threads.h"
#include "helper/helper.h"
#include "rights/priority.h"
#include "session/source_file.h"
#include "symbols/pysym.h"
#include "symbols/stacks.h"
#include "symbols/thread_name.h"

/* The only process of these tables. */
#define PROC_ID 1
/* Most searches for the holder of a GIL. */
#define ATTEMPTS 4
/*
 * Longest time in which names and lines are read, in sum and without what is read between them. It takes some
 * milliseconds; a process that lies about them can make it longer.
 */
#define NAMING_NS 5000000000ull

struct runtime {
	struct pybpf_runtime place;
	const struct pybpf_layout *layout;
	const struct discovery_python *python;
};

struct by_state {
	uint64_t tstate, gil;
	uint32_t index;
	uint32_t pad;
};

struct collector {
	struct dump_process *out;
	pid_t pid;
	bool inside_differs; /* the process is in another PID namespace */
	bool frozen;         /* by its control group */
	bool stopped;        /* by freeze */
	bool tasks;          /* asyncio's are wanted */
	bool native;         /* native frames are wanted */
	bool brief;          /* as in struct dump_wanted */
	const struct dump_core *core;
	const struct dump_peers *peers;
	struct dump_locals_wanted locals;
	struct dump_freeze freeze;
	struct discovery_python *pythons;
	struct runtime runtimes[PYBPF_MAX_RUNTIMES];
	size_t nr_runtimes;
	struct walk_memory memory;
	int silent; /* error with which a read of the memory had no answer; 0: each had one */
	struct pysym *pysym;
	struct stacks *stacks;
	struct dump_sources sources;
	uint64_t last_stack_id;
	struct dump_known_list known;
	struct intern by_state; /* struct by_state: threads that have been read */
	/* threading._active of the interpreter that was met last. */
	uint64_t names_interp, names;
};

/* Notes that a part could not be read. The first reason is the one to tell: others follow from it. */
static void note_unread(struct collector *c, int err)
{
	c->out->incomplete = c->out->incomplete ?: err;
}

/* Reads the process's memory. What has no answer looks like the end of a list to those who walk one. */
static int read_memory(void *source, uint64_t addr, void *dst, size_t size)
{
	struct collector *c = source;
	int err = remote_read(c->pid, addr, dst, size);

	if (helper_has_no_answer(err)) {
		note_unread(c, err);
		c->silent = c->silent ?: err;
	}
	return err;
}

static int find_pythons(struct collector *c, bool named, struct error *error)
{
	enum discovery_result result;
	size_t count = 0;

	c->pythons = calloc(PYBPF_MAX_RUNTIMES, sizeof(*c->pythons));
	if (!c->pythons)
		return error_set(error, -ENOMEM, "cannot look at process %d: %s", c->pid, strerror(ENOMEM));
	result = discovery_wait_runtimes(c->pid, false, named ? DISCOVERY_UNMAPPED_S : 0, c->pythons,
					 PYBPF_MAX_RUNTIMES, &count, error);
	if (result != DISCOVERY_OK && !(result == DISCOVERY_CONTRADICTED && count))
		return -ENOENT;
	for (size_t i = 0; i < count && i < PYBPF_MAX_RUNTIMES; i++) {
		const struct discovery_python *python = &c->pythons[i];

		if (!discovery_is_running(python))
			continue;
		c->runtimes[c->nr_runtimes++] = (struct runtime){
			.place = {.interp_head = python->interp_head_addr,
				  .tstate_current = python->tstate_current_addr,
				  .code_type = python->code_type_addr,
				  .asyncio = c->tasks ? python->asyncio : (struct pybpf_asyncio){.loaded = false}},
			.layout = &python->build.layout,
			.python = python,
		};
		if (c->tasks)
			dump_find_tasks(&c->memory, &python->build.layout, &c->runtimes[c->nr_runtimes - 1].place);
	}
	return 0;
}

static int add_runtimes(struct collector *c)
{
	int err = 0;

	for (size_t i = 0; i < c->nr_runtimes && !err; i++) {
		if (i)
			pysym_add_runtime(c->pysym, PROC_ID, (uint32_t)i, c->runtimes[i].layout);
		else
			err = pysym_add_process(c->pysym, PROC_ID, c->pid, c->runtimes[i].layout);
		err = err
			      ?: dump_list_threads(&c->memory, c->runtimes[i].layout, &c->runtimes[i].place,
						   (uint32_t)i, &c->known);
	}
	/* Without the whole list, a thread that is missing in it would seem to run no Python. */
	return err ?: c->silent;
}

static int add_thread(pid_t tid, void *arg)
{
	struct collector *c = arg;
	struct dump_process *out = c->out;
	struct procfs_status status;
	struct procfs_stat stat;

	if (procfs_read_task_stat(c->pid, tid, &stat))
		return 0;
	if (array_reserve(&out->threads, &out->room, out->count + 1, sizeof(*out->threads)))
		return -ENOMEM;
	out->threads[out->count] = (struct dump_thread){.tid = tid,
							.inside = tid,
							.name = strdup(stat.comm),
							.task_stack = PROFILE_ROOT,
							.start_time = stat.start_time};
	if (c->inside_differs && !procfs_read_status(tid, &status))
		out->threads[out->count].inside = status.inside;
	return out->threads[out->count++].name ? 0 : -ENOMEM;
}

/* By their registers, since gcore(1) leaves out stacks of which it cannot read a page. Returns whether any is known. */
static bool match_registers(struct collector *c)
{
	bool any = false;

	for (uint32_t i = 0; i < c->known.threads.count && c->core; i++) {
		struct dump_known *known = dump_known_at(&c->known, i);

		known->inside = dump_core_find_thread(c->core, known->thread_id);
		any = any || known->inside;
	}
	return any;
}

static int list_tasks(struct collector *c)
{
	pid_t *inside;
	int err = procfs_each_task(c->pid, add_thread, c);

	if (err)
		return err;
	if (match_registers(c))
		return dump_index_tids(&c->known);
	inside = calloc(c->out->count + 1, sizeof(*inside));
	if (!inside)
		return -ENOMEM;
	for (size_t i = 0; i < c->out->count; i++)
		inside[i] = c->out->threads[i].inside;
	err = dump_find_tids(&c->memory, inside, c->out->count, &c->known) ?: dump_index_tids(&c->known);
	free(inside);
	return err ?: c->silent;
}

/* Returns the address of threading._active of the thread's interpreter, or 0. */
static uint64_t find_names(struct collector *c, const struct dump_known *known)
{
	if (c->names_interp != known->interp) {
		c->names_interp = known->interp;
		c->names = pysym_find_threads(&c->memory, c->runtimes[known->runtime].layout, known->interp);
	}
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

static int keep_stack(struct collector *c, const struct dump_known *known, struct dump_thread *thread,
		      const struct walk_stack *stack)
{
	struct pybpf_stack_event *event =
		walk_stack_event(stack->frames, stack->depth, stack->flags, PROC_ID, known->runtime);
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

static enum dump_stopped stopped_of(const struct collector *c, pid_t tid)
{
	return c->core ? dump_core_stopped(c->core, tid) : dump_stopped_of(&c->freeze, tid);
}

/* Returns whether the process cannot change while it is read. */
static bool is_stopped(const struct collector *c)
{
	return c->core || c->stopped || c->frozen;
}

static int read_state(struct collector *c, struct dump_thread *thread)
{
	int err = dump_read_state(c->pid, thread->tid, stopped_of(c, thread->tid), &thread->state);

	switch (dump_judge_reading(err)) {
	case DUMP_READ:
		return 0;
	case DUMP_GONE:
		thread->state.ended = true;
		return 0;
	case DUMP_UNREAD:
		thread->unread = thread->unread ?: err;
		thread->state_unread = true;
		note_unread(c, err);
		return 0;
	case DUMP_FAILED:
		break;
	}
	return err;
}

static int keep_python(struct collector *c, const struct dump_known *known, struct dump_stack *stack,
		       struct dump_thread *thread)
{
	int err;

	thread->is_moving = !stack->proved;
	thread->state = stack->state;
	thread->ident = known->thread_id;
	thread->locks = stack->locks;
	thread->facts = stack->facts;
	if (thread->is_moving) {
		thread->facts.has_exception = thread->facts.exception_known = false;
		thread->facts.collection = PYBPF_COLLECTION_UNKNOWN;
	}
	err = take_name(thread, stack->name) ?: keep_stack(c, known, thread, &stack->walk);
	dump_forget_locals(thread);
	if (!err && (c->locals.level || c->native))
		dump_keep_locals(thread, known->runtime, stack);
	return err;
}

/* Reads a thread of Python, perhaps once more; what an earlier read has told stays where this one has no answer. */
static int read_python(struct collector *c, const struct dump_known *known, struct dump_thread *thread)
{
	struct dump_stack_of of = {
		.pid = c->pid,
		.tid = thread->tid,
		.thread_id = known->thread_id,
		.names = find_names(c, known),
		.stopped = stopped_of(c, thread->tid),
		.states = known->states,
		.locals = c->locals,
		.runtime = c->runtimes[known->runtime].place,
		.layout = *c->runtimes[known->runtime].layout,
	};
	bool again = thread->is_python;
	struct dump_stack stack;
	int err;

	of.states.exact = of.stopped != DUMP_NOT_STOPPED;
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
		note_unread(c, err);
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

static const struct dump_known *find_known(const struct collector *c, const struct dump_thread *thread)
{
	return dump_known_by_tid(&c->known, thread->inside);
}

/* Tells which threads run a function of another interpreter than the main one. */
static void mark_subinterpreters(struct collector *c)
{
	for (size_t i = 0; i < c->out->count; i++) {
		struct dump_thread *thread = &c->out->threads[i];
		const struct dump_known *known = find_known(c, thread);

		thread->in_subinterpreter = known && thread->is_python && thread->facts.interp &&
					    thread->facts.interp != c->known.main_interps[known->runtime];
	}
	c->out->nr_interps = c->known.nr_interps;
}

/* Returns the index of the thread that holds the GIL, which is the one that `thread` needs; -1: none that is known. */
static ssize_t find_holder(const struct collector *c, const struct dump_thread *thread)
{
	const struct dump_known *known = find_known(c, thread);
	uint64_t holder = known ? walk_gil_holder(&c->memory, c->runtimes[known->runtime].layout, thread->gil) : 0;

	const struct by_state key = {.tstate = holder, .gil = thread->gil};
	uint32_t at = holder ? intern_find(&c->by_state, &key) : INTERN_NONE;
	const struct dump_thread *found;

	if (at == INTERN_NONE)
		return -1;
	at = ((const struct by_state *)intern_item(&c->by_state, at))->index;
	found = &c->out->threads[at];
	/* It may have been read once more since. */
	return found->tstate == holder && found->gil == thread->gil ? (ssize_t)at : -1;
}

/*
 * Finds the holder of a GIL when all threads have been read. It changes hands all the time: a holder that waited for it
 * when it was read is read once more, until it holds it before and after.
 */
static int mark_holder(struct collector *c, const struct dump_thread *needs)
{
	ssize_t holder = find_holder(c, needs);
	int err = 0;

	for (int i = 0; i < ATTEMPTS && holder >= 0 && !err; i++) {
		struct dump_thread *thread = &c->out->threads[holder];
		ssize_t now;

		if (thread->state.wait.state != PYBPF_STATE_GIL) {
			thread->has_gil = true;
			break;
		}
		err = read_python(c, find_known(c, thread), thread);
		now = find_holder(c, needs);
		thread->has_gil = now == holder && thread->state.wait.state != PYBPF_STATE_GIL;
		if (thread->has_gil)
			break;
		holder = now;
	}
	return err;
}

static int index_states(struct collector *c)
{
	bool fresh;

	for (size_t i = 0; i < c->out->count; i++) {
		const struct dump_thread *thread = &c->out->threads[i];
		const struct by_state entry = {.tstate = thread->tstate, .gil = thread->gil, .index = (uint32_t)i};

		if (intern_add(&c->by_state, &entry, &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* Each GIL once: every interpreter may have its own, and a process that lies has one for each thread. */
static int mark_holders(struct collector *c)
{
	struct intern gils = INTERN_INIT(sizeof(uint64_t), sizeof(uint64_t));
	int err = index_states(c);

	for (size_t i = 0; i < c->out->count && !err; i++) {
		const struct dump_thread *thread = &c->out->threads[i];
		bool fresh;

		if (!thread->gil)
			continue;
		err = intern_add(&gils, &thread->gil, &fresh) == INTERN_NONE ? -ENOMEM : 0;
		if (!err && fresh)
			err = mark_holder(c, thread);
	}
	intern_free(&gils);
	return err;
}

/*
 * Native frames that cannot be read are left out from this thread on, since another thread's would take as long or as
 * much memory: what is known of Python does not depend on them.
 */
static void leave_native_out(struct collector *c, const struct dump_thread *thread, int err)
{
	c->native = false;
	note_unread(c, err);
	log_warn("process %d: C functions are left out from thread %d on: %s", c->out->row->process.pid, thread->tid,
		 err == -ENOMEM ? "the symbols of its libraries leave a helper process no memory"
				: helper_describe_error(err));
}

static void read_native(struct collector *c, const struct dump_known *known, struct dump_thread *thread)
{
	const struct runtime *runtime = &c->runtimes[known ? known->runtime : 0];
	const char *eval_loop = runtime->layout ? cpython_facts(runtime->layout)->names->eval_loop : "";
	struct unwind_registers registers;
	int err;

	if (c->core ? !dump_core_registers(c->core, thread->tid, &registers)
		    : !dump_registers_of(&c->freeze, thread->tid, &registers))
		return;
	err = dump_read_native(c->pid, c->core ? 1 : c->freeze.began_ns, &registers, eval_loop, &thread->native);
	if (err)
		leave_native_out(c, thread, err);
}

static int read_thread(struct collector *c, const struct dump_known *known, struct dump_thread *thread)
{
	bool reads_stack = known && !thread->is_missing;
	int err = reads_stack ? read_python(c, known, thread) : read_state(c, thread);

	/* Native frames of earlier threads may have taken all memory of the helper. */
	if (err == -ENOMEM && c->native) {
		dump_end_native();
		leave_native_out(c, thread, err);
		err = reads_stack ? read_python(c, known, thread) : read_state(c, thread);
	}
	return err;
}

static int read_threads(struct collector *c)
{
	int err = 0;

	for (size_t i = 0; i < c->out->count && !err; i++) {
		struct dump_thread *thread = &c->out->threads[i];
		const struct dump_known *known = find_known(c, thread);

		priority_check();
		thread->is_missing = c->core && !dump_core_has_stack(c->core, thread->tid);
		thread->is_python = known && thread->is_missing;
		err = read_thread(c, known, thread);
		if (!err && c->native && !thread->is_missing)
			read_native(c, known, thread);
		thread->native_unread = c->out->with_native && !c->native && !thread->is_missing;
		if (c->frozen && thread->state.wait.state != PYBPF_STATE_RUNNING)
			thread->state.wait = (struct pybpf_wait){.state = PYBPF_STATE_STOPPED};
	}
	if (c->out->with_native)
		dump_end_native();
	if (!err)
		err = mark_holders(c) ?: stacks_finish(c->stacks);
	mark_subinterpreters(c);
	return err;
}

static void free_thread(struct dump_thread *thread)
{
	free(thread->name);
	dump_native_free(&thread->native);
	dump_forget_locals(thread);
}

static void remove_ended(struct dump_process *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < out->count; i++) {
		if (out->threads[i].state.ended)
			free_thread(&out->threads[i]);
		else
			out->threads[kept++] = out->threads[i];
	}
	out->count = kept;
}

static int describe_sockets(struct collector *c)
{
	struct dump_state **states = calloc(c->out->count + 1, sizeof(struct dump_state *));
	size_t count = 0;

	if (!states)
		return -ENOMEM;
	for (size_t i = 0; i < c->out->count; i++) {
		if (c->out->threads[i].state.socket)
			states[count++] = &c->out->threads[i].state;
	}
	/* What cannot be described is a network wait without a name. */
	note_unread(c, dump_describe_sockets(c->pid, c->peers, states, count));
	free(states);
	return 0;
}

static int find_stacks(const struct collector *c)
{
	int err = 0;

	for (size_t i = 0; i < c->out->count && !err; i++) {
		struct dump_thread *thread = &c->out->threads[i];
		uint32_t stack = thread->stack_id ? stacks_find(c->stacks, thread->stack_id) : PROFILE_NONE;

		thread->stack = stack == PROFILE_NONE ? PROFILE_ROOT : stack;
		if (thread->walked)
			err = dump_number_frames(c->out, c->pysym, PROC_ID, thread);
		if (!err)
			dump_native_merge(thread);
	}
	for (size_t i = 0; i < c->out->greenlets.count; i++) {
		struct dump_greenlet *greenlet = &c->out->greenlets.items[i];
		uint32_t stack = stacks_find(c->stacks, greenlet->stack_id);

		greenlet->stack = stack == PROFILE_NONE ? PROFILE_ROOT : stack;
	}
	dump_greenlets_sort(&c->out->greenlets);
	return err;
}

static void read_head(struct collector *c)
{
	const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
	struct cgroup_mounts mounts;
	struct procfs_stat stat;
	uint64_t cpu_ns;

	if (c->core)
		return;
	if (!procfs_read_stat(c->pid, &stat))
		c->out->age_s = clock_s(CLOCK_BOOTTIME) - (double)stat.start_time * tick_s;
	if (!procfs_cpu_ns(c->pid, &cpu_ns))
		c->out->cpu_s = (double)cpu_ns / 1e9;
	c->out->at_s = clock_s(CLOCK_MONOTONIC);
	procfs_rss(c->pid, &c->out->rss_kib);
	dump_parents_read(c->pid, c->out->row->process.inside, &c->out->parents);
	if (cgroup_mounts_read(&mounts))
		return;
	c->frozen = cgroup_is_frozen(&mounts, c->pid);
	cgroup_mounts_free(&mounts);
}

static int read_tasks(struct collector *c)
{
	struct dump_tasks_of *of = calloc(1, sizeof(*of));
	int err = of ? 0 : -ENOMEM;

	for (size_t i = 0; c->tasks && i < c->nr_runtimes && !err; i++) {
		*of = (struct dump_tasks_of){
			.pid = c->pid,
			.runtime = (uint32_t)i,
			.stopped = is_stopped(c),
			.place = {.layout = *c->runtimes[i].layout,
				  .runtime = c->runtimes[i].place,
				  .proc_id = PROC_ID,
				  .whole_tree = 1},
			.python = c->runtimes[i].python,
			.stacks = c->stacks,
			.rights = c->sources.wanted ? &c->sources.rights : NULL,
		};
		err = dump_read_tasks(of, c->out);
	}
	free(of);
	return err;
}

static int read_greenlets(struct collector *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->nr_runtimes && !err; i++) {
		const struct dump_greenlets_of of = {.pid = c->pid,
						     .stopped = is_stopped(c),
						     .runtime = c->runtimes[i].place,
						     .layout = *c->runtimes[i].layout};
		const struct dump_greenlets_to to = {.process = c->out,
						     .known = &c->known,
						     .runtime = i,
						     .stacks = c->stacks,
						     .proc_id = PROC_ID,
						     .rights = c->sources.rights,
						     .last_stack_id = &c->last_stack_id};

		err = dump_collect_greenlets(&of, &to);
	}
	return err ?: stacks_finish(c->stacks);
}

/* Reads all that is to be of one moment. */
static int read_moment(struct collector *c)
{
	int err = add_runtimes(c) ?: list_tasks(c) ?: read_threads(c) ?: dump_index_make(c->out);

	if (!err && !is_stopped(c))
		dump_tell_on_cpu(c->pid, c->out);
	err = err ?: dump_find_deadlocks(c->out, is_stopped(c));
	if (!err)
		dump_find_held_up(c->out, is_stopped(c));
	return err ?: read_greenlets(c) ?: read_tasks(c);
}

static void thaw(struct collector *c)
{
	if (c->stopped)
		c->out->stood_s = (double)dump_thaw(&c->freeze) / 1e9;
	c->stopped = false;
}

static int collect(struct collector *c)
{
	unsigned long in_vain = helper_failed_calls();
	int err;

	c->out->stacks = profile_new();
	c->pysym = pysym_new(c->brief ? PYSYM_LINES_CURRENT : PYSYM_EXPRESSIONS, !c->brief);
	c->stacks = c->out->stacks && c->pysym ? stacks_new(c->pysym, c->out->stacks) : NULL;
	if (!c->stacks)
		return -ENOMEM;
	pysym_look_at_paths_by(c->pysym, source_file_look_at_path);
	pysym_read_for(c->pysym, NAMING_NS);
	c->sources.pysym = c->pysym;
	if (c->sources.wanted)
		stacks_set_on_first_use(c->stacks, dump_sources_met, &c->sources);
	err = read_moment(c);
	thaw(c);
	if (err)
		return err;
	err = find_stacks(c);
	remove_ended(c->out);
	err = err ?: dump_find_idle(c->out) ?: dump_index_make(c->out) ?: dump_count_alike(c->out) ?: describe_sockets(c) ?: dump_cut_lines(&c->sources);
	/* Names, lines and sources that had no answer are missing, and nobody has said why. */
	if (helper_failed_calls() != in_vain)
		note_unread(c, helper_last_failure());
	return err;
}

static int freeze(struct collector *c, struct error *error)
{
	int err = dump_freeze(c->pid, &c->freeze, error);

	c->stopped = !err;
	return err;
}

int dump_collect(const struct ps_row *row, const struct dump_wanted *wanted, struct dump_process *out,
		 struct error *error)
{
	struct collector *c = calloc(1, sizeof(*c));
	int err;

	*out = (struct dump_process){.row = row,
				     .core = wanted->core,
				     .tasks.wanted = wanted->tasks,
				     .incomplete = row->container_unread ?: row->command_unread};
	if (!c)
		return error_set(error, -ENOMEM, "cannot look at process %d: %s", row->process.pid, strerror(ENOMEM));
	c->out = out;
	c->core = wanted->core;
	c->peers = wanted->peers;
	c->pid = c->core ? PROCESS_SOURCE_PID : row->process.pid;
	c->tasks = wanted->tasks;
	c->locals = wanted->locals;
	c->brief = wanted->brief;
	c->native = out->with_native = wanted->native;
	out->with_locals = wanted->locals.level > 0;
	out->with_parents = wanted->parents;
	c->inside_differs = row->process.inside != row->process.pid;
	dump_known_init(&c->known);
	intern_init(&c->by_state, sizeof(struct by_state), offsetof(struct by_state, index));
	c->memory = (struct walk_memory){.read = read_memory, .source = c};
	err = find_pythons(c, wanted->named, error);
	if (!err) {
		read_head(c);
		dump_sources_init(&c->sources, wanted->sources && !c->core, row, out);
		/* What its control group has frozen is stopped already. */
		err = wanted->freeze && !c->frozen ? freeze(c, error) : 0;
	}
	if (!err) {
		err = collect(c);
		if (err)
			error_set(error, err, "cannot read process %d: %s", c->pid, helper_describe_error(err));
	}
	if (err && c->core)
		dump_core_retell(c->core, error);
	thaw(c);
	dump_sources_free(&c->sources);
	stacks_free(c->stacks);
	pysym_free(c->pysym);
	dump_known_free(&c->known);
	intern_free(&c->by_state);
	free(c->pythons);
	free(c);
	return err;
}

void dump_free(struct dump_process *process)
{
	for (size_t i = 0; i < process->count; i++)
		free_thread(&process->threads[i]);
	free(process->threads);
	dump_tasks_free(&process->tasks);
	dump_greenlets_free(&process->greenlets);
	dump_index_free(&process->index);
	intern_free(&process->alike);
	for (uint32_t i = 0; process->lines && i < profile_frame_count(process->stacks); i++)
		free(process->lines[i].text);
	free(process->lines);
	profile_free(process->stacks);
	*process = (struct dump_process){0};
}
