// SPDX-License-Identifier: Apache-2.0
/* Reads a process: its head, threads, tasks and greenlets, and names their functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/process_source.h"
#include "base/remote.h"
#include "container/cgroup.h"
#include "cpython/facts.h"
#include "discovery/ask.h"
#include "dump/collect.h"
#include "dump/core.h"
#include "dump/deadlock.h"
#include "dump/findings.h"
#include "dump/identity.h"
#include "dump/idle.h"
#include "dump/on_cpu.h"
#include "dump/thread_locals.h"
#include "helper/helper.h"
#include "session/sources/source_file.h"

/*
 * Longest time in which names and lines are read, in sum and without what is read between them. It takes some
 * milliseconds; a process that lies about them can make it longer.
 */
#define NAMING_NS 5000000000ull

/* Reads the process's memory. What has no answer looks like the end of a list to those who walk one. */
static int read_memory(void *source, uint64_t addr, void *dst, size_t size)
{
	struct dump_collector *c = source;
	int err = remote_read(c->pid, addr, dst, size);

	if (helper_has_no_answer(err)) {
		dump_note_unread(c, err);
		c->silent = c->silent ?: err;
	}
	return err;
}

/* Returns whether the Python's frames are what they are taken for: those of a version that is not known have to prove
 * it. */
static bool has_known_frames(const struct discovery_python *python, struct error *error)
{
	int err = cpython_is_newer(&python->build.layout) ? discovery_ask_validate(python, error) : 0;

	/* Where no function runs, none is taken for another. */
	return !err || err == -EAGAIN;
}

static int find_pythons(struct dump_collector *c, bool named, struct error *error)
{
	enum discovery_result result;
	bool refused = false;
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
		if (!has_known_frames(python, error)) {
			refused = true;
			continue;
		}
		discovery_warn_newer(python);
		c->runtimes[c->nr_runtimes++] = (struct dump_collector_runtime){
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
	return refused && !c->nr_runtimes ? -ENOENT : 0;
}

static int add_runtimes(struct dump_collector *c)
{
	int err = 0;

	for (size_t i = 0; i < c->nr_runtimes && !err; i++) {
		if (i)
			pysym_add_runtime(c->pysym, DUMP_PROC_ID, (uint32_t)i, c->runtimes[i].layout);
		else
			err = pysym_add_process(c->pysym, DUMP_PROC_ID, c->pid, c->runtimes[i].layout);
		err = err
			      ?: dump_list_threads(&c->memory, c->runtimes[i].layout, &c->runtimes[i].place,
						   (uint32_t)i, &c->known);
	}
	/* Without the whole list, a thread that is missing in it would seem to run no Python. */
	return err ?: c->silent;
}

static int add_thread(pid_t tid, void *arg)
{
	struct dump_collector *c = arg;
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
static bool match_registers(struct dump_collector *c)
{
	bool any = false;

	for (uint32_t i = 0; i < c->known.threads.count && c->core; i++) {
		struct dump_known *known = dump_known_at(&c->known, i);

		known->inside = dump_core_find_thread(c->core, known->thread_id + c->pythons->thread_bias);
		any = any || known->inside;
	}
	return any;
}

static int list_tasks(struct dump_collector *c)
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

static int describe_sockets(struct dump_collector *c)
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
	dump_note_unread(c, dump_describe_sockets(c->pid, c->peers, states, count));
	free(states);
	return 0;
}

static int find_stacks(const struct dump_collector *c)
{
	int err = 0;

	for (size_t i = 0; i < c->out->count && !err; i++) {
		struct dump_thread *thread = &c->out->threads[i];
		uint32_t stack = thread->stack_id ? stacks_find(c->stacks, thread->stack_id) : PROFILE_NONE;

		thread->stack = stack == PROFILE_NONE ? PROFILE_ROOT : stack;
		if (thread->walked)
			err = dump_number_frames(c->out, c->pysym, DUMP_PROC_ID, thread);
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

static void read_head(struct dump_collector *c)
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

static int read_tasks(struct dump_collector *c)
{
	struct dump_tasks_of *of = calloc(1, sizeof(*of));
	int err = of ? 0 : -ENOMEM;

	for (size_t i = 0; c->tasks && i < c->nr_runtimes && !err; i++) {
		*of = (struct dump_tasks_of){
			.pid = c->pid,
			.runtime = (uint32_t)i,
			.stopped = dump_is_stopped(c),
			.place = {.layout = *c->runtimes[i].layout,
				  .runtime = c->runtimes[i].place,
				  .proc_id = DUMP_PROC_ID,
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

/* Returns 0 or -ENOMEM. */
static int finish_stacks(struct dump_collector *c)
{
	return stacks_finish(c->stacks) ? -ENOMEM : 0;
}

static int read_greenlets(struct dump_collector *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->nr_runtimes && !err; i++) {
		const struct dump_greenlets_of of = {.pid = c->pid,
						     .stopped = dump_is_stopped(c),
						     .runtime = c->runtimes[i].place,
						     .layout = *c->runtimes[i].layout};
		const struct dump_greenlets_to to = {.process = c->out,
						     .known = &c->known,
						     .runtime = i,
						     .stacks = c->stacks,
						     .proc_id = DUMP_PROC_ID,
						     .rights = c->sources.rights,
						     .last_stack_id = &c->last_stack_id};

		err = dump_collect_greenlets(&of, &to);
	}
	return err ?: finish_stacks(c);
}

/* Reads all that is to be of one moment. */
static int read_moment(struct dump_collector *c)
{
	int err = add_runtimes(c) ?: list_tasks(c) ?: dump_read_threads(c);

	/* A thread may be read once more for it. */
	err = err ?: dump_mark_gil_holders(c);
	if (!err)
		dump_mark_subinterpreters(c);
	err = err ?: finish_stacks(c) ?: dump_index_make(c->out);
	if (!err && !dump_is_stopped(c))
		dump_tell_on_cpu(c->pid, c->out);
	err = err ?: dump_find_deadlocks(c->out, dump_is_stopped(c));
	if (!err)
		dump_find_held_up(c->out, dump_is_stopped(c));
	return err ?: read_greenlets(c) ?: read_tasks(c);
}

static void thaw(struct dump_collector *c)
{
	if (c->stopped)
		c->out->stood_s = (double)dump_thaw(&c->freeze) / 1e9;
	c->stopped = false;
}

static int collect(struct dump_collector *c)
{
	unsigned long failed_before = helper_failed_calls();
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
	if (c->out->with_native)
		dump_end_native();
	thaw(c);
	if (err)
		return err;
	err = find_stacks(c);
	remove_ended(c->out);
	err = err ?: dump_find_idle(c->out) ?: dump_index_make(c->out) ?: dump_count_alike(c->out) ?: describe_sockets(c) ?: dump_cut_lines(&c->sources);
	/* Names, lines and sources that had no answer are missing, and nobody has said why. */
	if (helper_failed_calls() != failed_before)
		dump_note_unread(c, helper_last_failure());
	return err;
}

static int freeze(struct dump_collector *c, struct error *error)
{
	int err = dump_freeze(c->pid, &c->freeze, error);

	c->stopped = !err;
	return err;
}

int dump_collect(const struct ps_row *row, const struct dump_wanted *wanted, struct dump_process *out,
		 struct error *error)
{
	struct dump_collector *c = calloc(1, sizeof(*c));
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
