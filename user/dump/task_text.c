// SPDX-License-Identifier: Apache-2.0
/* Prints asyncio's tasks as a tree: below each task those that it awaits. */
#include <inttypes.h>

#include "base/text.h"
#include "dump/dump.h"
#include "dump/print.h"

/* Blanks before a task, for each that awaits it; of a longer way no more than these. */
#define STEP    2
#define DEEPEST 40
/* Names that are printed of tasks that are alike. */
#define NAMES 8

struct printing {
	const struct dump_process *process;
	enum dump_style style;
	bool tells_threads; /* they have tasks of several */
	FILE *out;
};

static const struct dump_task *task_at(const struct printing *p, uint32_t index)
{
	return &p->process->tasks.items[index];
}

static void print_name(const struct printing *p, uint32_t index)
{
	fputc('"', p->out);
	text_print(task_at(p, index)->name, p->out);
	fputc('"', p->out);
}

/* Prints how many more are like the task, and some of their names. */
static void print_alike(const struct printing *p, const struct dump_step *step)
{
	if (!step->nr_alike)
		return;
	fprintf(p->out, " and %zu more like it (", step->nr_alike);
	for (size_t i = 0; i < step->nr_alike && i < NAMES; i++) {
		fputs(i ? ", " : "", p->out);
		print_name(p, step->alike[i]);
	}
	fputs(step->nr_alike > NAMES ? ", ...)" : ")", p->out);
}

/* Prints what the task does, which thread it belongs to if its awaiter's is another one, and what is uncertain. */
static void print_state(const struct printing *p, const struct dump_step *step)
{
	const struct dump_task *task = task_at(p, step->task);
	int tid = dump_task_tid(p->process, task);
	bool tells_thread =
		p->tells_threads && (!step->depth || task_at(p, step->path[step->depth - 1])->tstate != task->tstate);

	fputs(task->awaits ? ": awaits " : ": running", p->out);
	text_print(task->awaits ?: "", p->out);
	if (!task->tstate && (tells_thread || !step->depth))
		fputs(", no thread runs it", p->out);
	else if (tid && (tells_thread || !task->awaits))
		fprintf(p->out, task->awaits ? ", of thread %d" : " on thread %d", tid);
	if (task->has_others)
		fputs(task->nr_awaiters ? ", awaited by others, too" : ", awaited by what is not in this list", p->out);
	if (task->is_moving)
		fputs(", moving", p->out);
	fputc('\n', p->out);
}

/* Prints a cycle from the task on that closes it. */
static void print_cycle(const struct printing *p, const struct dump_step *step, int indent)
{
	bool moving = false;

	for (size_t i = step->begin; i < step->depth; i++)
		moving = moving || task_at(p, step->path[i])->is_moving;
	fprintf(p->out, "%*s%s: ", indent, "", moving ? "Perhaps a cycle, of tasks that moved" : "Cycle");
	for (size_t i = step->begin; i < step->depth; i++) {
		print_name(p, step->path[i]);
		fputs(" awaits ", p->out);
	}
	print_name(p, step->task);
	fputc('\n', p->out);
}

static void print_step(const struct dump_step *step, void *arg)
{
	const struct printing *p = arg;
	size_t steps = step->depth < DEEPEST ? step->depth : DEEPEST;
	int indent = (int)steps * STEP;

	if (step->kind == DUMP_STEP_CYCLE) {
		print_cycle(p, step, indent);
		return;
	}
	fprintf(p->out, "%s%*sTask ", step->depth ? "" : "\n", indent, "");
	print_name(p, step->task);
	if (step->kind == DUMP_STEP_AGAIN) {
		fputs(": see above\n", p->out);
		return;
	}
	print_alike(p, step);
	print_state(p, step);
	dump_print_stack(p->process, NULL, task_at(p, step->task)->stack, p->style, indent + STEP, p->out);
}

static size_t count_moving(const struct dump_tasks *tasks)
{
	size_t count = 0;

	for (size_t i = 0; i < tasks->count; i++)
		count += tasks->items[i].is_moving;
	return count;
}

static void print_head(const struct dump_tasks *tasks, FILE *out)
{
	size_t moving = count_moving(tasks);

	fprintf(out, "\nTasks (%zu, %zu of them running)", tasks->count, tasks->running);
	if (moving)
		fprintf(out,
			", %zu of them moving: they changed while all were read, and show other moments than the rest",
			moving);
	fputc('\n', out);
	if (tasks->counts.moving)
		fprintf(out, "  not shown: %" PRIu64 " that changed at each attempt to read them\n",
			tasks->counts.moving);
	if (tasks->counts.torn)
		fprintf(out, "  not shown: the rest of %" PRIu64 " lists of tasks that changed while they were read\n",
			tasks->counts.torn);
	if (tasks->counts.beyond)
		fprintf(out, "  not shown: those beyond the first %zu\n", tasks->count);
}

void dump_print_tasks(const struct dump_process *process, enum dump_style style, FILE *out)
{
	struct printing p = {.process = process, .style = style, .out = out};
	const struct dump_tasks *tasks = &process->tasks;

	if (!tasks->wanted)
		return;
	if (tasks->note && !tasks->count) {
		fputs("\nNo tasks: ", out);
		text_print(tasks->note, out);
		fputc('\n', out);
		return;
	}
	for (size_t i = 1; i < tasks->count; i++)
		p.tells_threads = p.tells_threads || tasks->items[i].tstate != tasks->items[0].tstate;
	print_head(tasks, out);
	if (dump_visit_tasks(tasks, print_step, &p))
		fputs("  (no memory for them)\n", out);
}
