// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a process's tasks until none has changed since they were found, or twice: a task that is the same in both
 * readings was so at the moment between. All that are not marked as moving are of one moment.
 */
#include "dump/tasks.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "cpython/facts.h"
#include "discovery/ask_tasks.h"
#include "discovery/discovery.h"
#include "dump/dump.h"
#include "helper/helper.h"
#include "session/waits/wait_name.h"
#include "symbols/tasks/current_tasks.h"
#include "symbols/stacks.h"
#include "symbols/tasks/tasks.h"

/* Readings of all tasks. The last one counts; a task of a loop that runs all the time has to be in two of them. */
#define READINGS 4
/* But no third one is begun after this. */
#define READINGS_NS 200000000ull

/* Longest wait for an answer, of which one has some thousand tasks: they take a tenth of a second. */
#define PATIENCE_S 3.0
/* Readings that are begun anew because the helper was replaced by another one meanwhile. */
#define HELPERS 3

/* The only process of the tables, as in collect.c. */
#define PROC_ID 1

/* A task as task_read_pack() writes it; its key is its identity. */
struct packed {
	uint64_t identity;
	void *bytes;
	size_t size;
	bool steady;
};

struct reading {
	struct intern tasks; /* struct packed */
	struct task_read_counts counts;
	bool steady; /* all tasks are */
};

static void reading_free(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->tasks.count; i++)
		free(((struct packed *)intern_item(&reading->tasks, i))->bytes);
	intern_free(&reading->tasks);
	*reading = (struct reading){.steady = false};
	intern_init(&reading->tasks, sizeof(struct packed), sizeof(uint64_t));
}

static int take_task(const struct task_read *task, void *arg)
{
	struct reading *reading = arg;
	struct task_read plain = *task;
	struct packed packed = {.identity = task->identity, .size = task_read_packed_size(task)};
	bool fresh;

	/* No thread is left that runs it, and its reading was the same twice. */
	packed.steady = !task->tstate || task->tree & TASK_TREE_STEADY;
	/* What two readings of a task may differ in. */
	plain.tree &= ~(unsigned)TASK_TREE_STEADY;
	packed.bytes = calloc(1, packed.size);
	if (!packed.bytes)
		return -ENOMEM;
	task_read_pack(&plain, packed.bytes);
	reading->steady = reading->steady && packed.steady;
	if (intern_add(&reading->tasks, &packed, &fresh) == INTERN_NONE || !fresh) {
		free(packed.bytes);
		return fresh ? -ENOMEM : 0;
	}
	return 0;
}

/* Returns 0 or negative errno. */
static int read_once(const struct dump_tasks_of *of, struct reading *reading)
{
	int err = -ESTALE;

	for (int i = 0; i < HELPERS && err == -ESTALE; i++) {
		reading_free(reading);
		reading->steady = true;
		err = discovery_ask_tasks(of->pid, &of->place, PATIENCE_S, HUGE_VAL, take_task, reading,
					  &reading->counts);
	}
	return err;
}

/* Reads until all tasks are steady; *before: the reading before the last one. Returns 0 or negative errno. */
static int read_all(const struct dump_tasks_of *of, struct reading *last, struct reading *before)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + READINGS_NS;
	int err = read_once(of, last);

	for (int i = 1; i < READINGS && !err && !last->steady && !of->stopped; i++) {
		struct reading older = *before;

		if (i > 1 && clock_ns(CLOCK_MONOTONIC) > until_ns)
			break;
		*before = *last;
		*last = older;
		err = read_once(of, last);
	}
	return err;
}

/* Returns whether the task was the same in both readings, but for what its thread did besides. */
static bool is_same(const struct packed *task, const struct reading *before)
{
	uint32_t i = intern_find(&before->tasks, &task->identity);
	const struct packed *was = i == INTERN_NONE ? NULL : intern_item(&before->tasks, i);
	struct task_read a, b;

	if (!was || was->size != task->size || !task_read_unpack(was->bytes, was->size, &a) ||
	    !task_read_unpack(task->bytes, task->size, &b))
		return false;
	a.contexts = b.contexts;
	return !memcmp(&a, &b, offsetof(struct task_read, tasks)) &&
	       !memcmp(a.awaiters, b.awaiters, a.nr_awaiters * sizeof(*a.awaiters)) &&
	       !memcmp(a.frames, b.frames, a.nr_frames * sizeof(*a.frames)) && a.awaits != TASK_AWAITS_RUNS;
}

/* Gives a running task the functions that its thread had in the same step of it. */
static void take_running(const struct task_read *read, const struct dump_process *process, struct dump_task *task)
{
	size_t count, at = dump_index_find(&process->index, DUMP_BY_TSTATE, read->tstate, &count);
	const struct dump_thread *thread = count ? &process->threads[at] : NULL;

	task->is_moving = !thread || thread->facts.is_moving || thread->contexts != read->contexts;
	/* While an eager task takes its first step, the one that made it runs, too. */
	if (!task->is_moving && thread->task == read->address)
		task->stack = thread->task_stack;
}

static int push_functions(const struct dump_tasks_of *of, const struct task_read *read, uint32_t *stack)
{
	const struct pybpf_stack_event event = {
		.event.runtime = (uint8_t)of->runtime, .proc_id = PROC_ID, .depth = read->nr_frames};

	return stacks_push_suspended(of->stacks, &event, of->rights, read->frames, stack);
}

/* Returns 0 or -ENOMEM, with what *task has to be freed. */
static int make_task(const struct dump_tasks_of *of, const struct task_read *read, const struct dump_process *process,
		     struct dump_task *task)
{
	char *name = read->nr_tasks ? tasks_name(&read->tasks[0]) : NULL;

	task->id = read->address;
	task->identity = read->identity;
	task->tstate = read->tstate;
	task->stack = PROFILE_ROOT;
	task->has_others = (read->tree & (TASK_TREE_OTHERS | TASK_TREE_MORE)) != 0;
	task->name = name ?: strdup("unknown");
	if (read->awaits == TASK_AWAITS_RUNS) {
		take_running(read, process, task);
		return task->name ? 0 : -ENOMEM;
	}
	task->awaits = session_name_awaited(read);
	return task->name && task->awaits ? push_functions(of, read, &task->stack) : -ENOMEM;
}

/* A task that is kept, by what another one knows of it. */
struct known {
	struct task_read_awaiter as;
	uint32_t index;
	uint32_t pad;
};

/* Finds those that await a task among the ones that were read. */
static int link_task(const struct task_read *read, const struct intern *known, struct dump_task *task)
{
	task->awaiters = calloc(read->nr_awaiters + 1, sizeof(*task->awaiters));
	if (!task->awaiters)
		return -ENOMEM;
	for (uint32_t i = 0; i < read->nr_awaiters; i++) {
		const struct known key = {.as = read->awaiters[i]};
		uint32_t at = intern_find(known, &key);

		if (at == INTERN_NONE)
			task->has_others = true;
		else
			task->awaiters[task->nr_awaiters++] = ((const struct known *)intern_item(known, at))->index;
	}
	return 0;
}

static int add_task(const struct dump_tasks_of *of, const struct packed *packed, const struct reading *before,
		    struct dump_process *process)
{
	struct dump_tasks *tasks = &process->tasks;
	struct dump_task *task;
	struct task_read read;

	if (!task_read_unpack(packed->bytes, packed->size, &read))
		return 0;
	if (array_reserve(&tasks->items, &tasks->room, tasks->count + 1, sizeof(*tasks->items)))
		return -ENOMEM;
	task = &tasks->items[tasks->count++];
	*task = (struct dump_task){.is_moving = !of->stopped && !packed->steady && !is_same(packed, before)};
	tasks->running += read.awaits == TASK_AWAITS_RUNS;
	return make_task(of, &read, process, task);
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp(((const struct dump_task *)a)->name, ((const struct dump_task *)b)->name);
}

static int note_known(const struct dump_tasks *tasks, size_t first, struct intern *known)
{
	bool fresh;

	for (size_t i = first; i < tasks->count; i++) {
		const struct known key = {.as = {tasks->items[i].id, tasks->items[i].identity}, .index = (uint32_t)i};

		if (intern_add(known, &key, &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int link_tasks(const struct reading *reading, const struct intern *known, struct dump_tasks *tasks)
{
	struct task_read read;
	int err = 0;

	for (uint32_t i = 0; i < reading->tasks.count && !err; i++) {
		const struct packed *packed = intern_item(&reading->tasks, i);
		struct known key;
		uint32_t at;

		if (!task_read_unpack(packed->bytes, packed->size, &read))
			continue;
		key.as = (struct task_read_awaiter){read.address, read.identity};
		at = intern_find(known, &key);
		if (at != INTERN_NONE)
			err = link_task(&read, known, &tasks->items[((struct known *)intern_item(known, at))->index]);
	}
	return err;
}

static enum cpython_tasks_kind kind_of(const struct dump_tasks_of *of)
{
	return cpython_facts(&of->place.layout)->tasks->kind;
}

static int add_tasks(const struct dump_tasks_of *of, const struct reading *last, const struct reading *before,
		     struct dump_process *process)
{
	struct intern known = INTERN_INIT(sizeof(struct known), sizeof(struct task_read_awaiter));
	struct dump_tasks *tasks = &process->tasks;
	size_t first = tasks->count;
	int err = 0;

	for (uint32_t i = 0; i < last->tasks.count && !err; i++)
		err = add_task(of, intern_item(&last->tasks, i), before, process);
	/* Those of a list are in the order in which they were made. */
	if (!err && kind_of(of) == CPYTHON_TASKS_IN_SETS && tasks->count > first)
		qsort(tasks->items + first, tasks->count - first, sizeof(*tasks->items), compare_names);
	if (!err)
		err = note_known(tasks, first, &known) ?: link_tasks(last, &known, tasks);
	intern_free(&known);
	return err;
}

static void add_counts(struct task_read_counts *to, const struct task_read_counts *from)
{
	to->moving += from->moving;
	to->torn += from->torn;
	to->beyond += from->beyond;
}

/* Says why there are no tasks, unless something was said already. Returns 0 or -ENOMEM. */
__attribute__((format(printf, 2, 3))) static int note(struct dump_process *process, const char *format, ...)
{
	va_list args;

	if (process->tasks.note)
		return 0;
	va_start(args, format);
	if (vasprintf(&process->tasks.note, format, args) < 0)
		process->tasks.note = NULL;
	va_end(args);
	return process->tasks.note ? 0 : -ENOMEM;
}

void dump_find_tasks(const struct walk_memory *memory, const struct pybpf_layout *layout, struct pybpf_runtime *runtime)
{
	uint64_t interp = pysym_main_interpreter(memory, layout, runtime->interp_head);
	struct pysym_modules seen = {.entries = 0};

	if (interp && cpython_facts(layout)->tasks->kind == CPYTHON_TASKS_IN_SETS)
		pysym_find_tasks(memory, layout, interp, &seen, &runtime->asyncio);
}

int dump_read_tasks(const struct dump_tasks_of *of, struct dump_process *process)
{
	const struct pybpf_asyncio *asyncio = &of->place.runtime.asyncio;
	struct reading last = {.steady = false}, before = {.steady = false};
	int err;

	if (discovery_check_tasks(of->python, NULL))
		return note(process, "asyncio's tasks can be read from Python 3.7 on, and this is %s",
			    of->python->version);
	if (!asyncio->loaded && !asyncio->current_tasks)
		return note(process, "the process has not loaded asyncio");
	if (kind_of(of) == CPYTHON_TASKS_IN_SETS && !asyncio->current_tasks)
		return note(process, "asyncio is not imported (yet), or its tasks could not be found");
	if (kind_of(of) == CPYTHON_TASKS_IN_LISTS && (!asyncio->thread_tasks || !of->place.layout.gen_frame))
		return note(process, "Python %s does not say where its tasks are", of->python->version);
	reading_free(&last);
	reading_free(&before);
	err = read_all(of, &last, &before);
	if (!err) {
		add_counts(&process->tasks.counts, &last.counts);
		err = add_tasks(of, &last, &before, process);
	} else if (err != -ENOMEM && err != -EINTR) {
		process->incomplete = process->incomplete ?: err;
		err = note(process, "they could not be read: %s", helper_describe_error(err));
	}
	reading_free(&last);
	reading_free(&before);
	return err;
}

int dump_push_running(struct stacks *stacks, const struct pybpf_stack_event *thread, const struct walk_stack *walk,
		      uint32_t *out)
{
	uint32_t depth = walk->task_depth, kept = 0;
	struct pybpf_stack_event event = {.event.runtime = thread->event.runtime, .proc_id = thread->proc_id};
	struct pybpf_frame *frames;
	int err;

	*out = PROFILE_ROOT;
	/* In a longer stack the middle is cut. */
	if (!depth || (walk->depth > PYBPF_MAX_FRAMES && depth > PYBPF_HALF_FRAMES))
		return 0;
	frames = calloc(depth, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (uint32_t i = depth; i-- > 0;) {
		if (walk->frames[i].kind == PYBPF_FRAME_PYTHON)
			frames[kept++] = walk->frames[i];
	}
	event.depth = kept;
	err = stacks_push_suspended(stacks, &event, &thread->rights, frames, out);
	free(frames);
	return err;
}

void dump_tasks_free(struct dump_tasks *tasks)
{
	for (size_t i = 0; i < tasks->count; i++) {
		free(tasks->items[i].name);
		free(tasks->items[i].awaits);
		free(tasks->items[i].awaiters);
	}
	free(tasks->items);
	free(tasks->note);
	*tasks = (struct dump_tasks){.wanted = false};
}
