// SPDX-License-Identifier: Apache-2.0
/* Writes asyncio's tasks as JSON; docs/dump.md describes it. */
#include "base/json.h"
#include "dump/dump.h"
#include "dump/print.h"

static void write_task(const struct dump_process *process, const struct dump_task *task, struct json *j)
{
	int tid = dump_task_tid(process, task);

	json_begin_object(j, NULL);
	json_uint(j, "id", task->id);
	json_string(j, "name", task->name);
	json_string(j, "state", task->awaits ? "suspended" : "running");
	if (task->awaits)
		json_string(j, "awaits", task->awaits);
	else
		json_null(j, "awaits");
	if (tid)
		json_int(j, "tid", tid);
	else
		json_null(j, "tid");
	json_bool(j, "moving", task->is_moving);
	json_begin_array(j, "awaited_by");
	for (size_t i = 0; i < task->nr_awaiters; i++)
		json_uint(j, NULL, process->tasks.items[task->awaiters[i]].id);
	json_end_array(j);
	json_bool(j, "awaited_by_others", task->has_others);
	dump_write_frames(process, NULL, task->stack, j);
	json_end_object(j);
}

struct cycles {
	const struct dump_tasks *tasks;
	struct json *j;
};

static void write_cycle(const struct dump_step *step, void *arg)
{
	const struct cycles *c = arg;

	if (step->kind != DUMP_STEP_CYCLE)
		return;
	json_begin_array(c->j, NULL);
	for (size_t i = step->begin; i < step->depth; i++)
		json_uint(c->j, NULL, c->tasks->items[step->path[i]].id);
	json_end_array(c->j);
}

static void write_left_out(const struct task_read_counts *counts, struct json *j)
{
	json_begin_object(j, "tasks_left_out");
	json_uint(j, "moving", counts->moving);
	json_uint(j, "torn_lists", counts->torn);
	json_uint(j, "beyond", counts->beyond);
	json_end_object(j);
}

void dump_write_tasks(const struct dump_process *process, struct json *j)
{
	const struct dump_tasks *tasks = &process->tasks;
	struct cycles cycles = {tasks, j};

	if (tasks->note)
		json_string(j, "tasks_note", tasks->note);
	else
		json_null(j, "tasks_note");
	if (!tasks->wanted || (tasks->note && !tasks->count)) {
		json_null(j, "tasks");
		json_null(j, "task_cycles");
		json_null(j, "tasks_left_out");
		return;
	}
	json_begin_array(j, "tasks");
	for (size_t i = 0; i < tasks->count; i++)
		write_task(process, &tasks->items[i], j);
	json_end_array(j);
	json_begin_array(j, "task_cycles");
	dump_visit_tasks(tasks, write_cycle, &cycles);
	json_end_array(j);
	write_left_out(&tasks->counts, j);
}
