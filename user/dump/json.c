// SPDX-License-Identifier: Apache-2.0
/* Writes a picture of a process as JSON; docs/dump.md describes it. */
#include "base/json.h"

#include <stdlib.h>

#include "dump/dump.h"

static void write_frame(const struct dump_process *process, uint32_t index, struct json *j)
{
	const struct profile_frame *frame = profile_frame_at(process->stacks, index);
	bool known = frame->line != PROFILE_NO_LINE;

	json_begin_object(j, NULL);
	json_string(j, "kind", frame->kind == PROFILE_PYTHON ? "python" : "note");
	json_string(j, "function", profile_string(process->stacks, frame->name));
	if (frame->kind == PROFILE_PYTHON) {
		json_string(j, "file", profile_string(process->stacks, frame->file));
		if (known)
			json_int(j, "line", frame->line);
		else
			json_null(j, "line");
		if (process->lines[index])
			json_string(j, "source", process->lines[index]);
		else
			json_null(j, "source");
	}
	json_end_object(j);
}

static void write_change(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, struct json *j)
{
	static const char *const words[] = {
		[DUMP_CHANGE_NONE] = "none",
		[DUMP_CHANGE_SAME_PLACE] = "same place",
		[DUMP_CHANGE_MOVED] = "moved",
		[DUMP_CHANGE_NEW] = "new",
	};

	if (before)
		json_string(j, "change", words[dump_compare(before, process, thread)]);
	else
		json_null(j, "change");
}

static void write_thread(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, struct json *j)
{
	const struct dump_thread *holder = dump_find_holder(process, thread);
	bool running = thread->state.wait.state == PYBPF_STATE_RUNNING;
	char cause[DUMP_STATE_NAME];
	size_t count;
	uint32_t *frames = dump_frames(process, thread->stack, &count);

	json_begin_object(j, NULL);
	json_int(j, "tid", thread->tid);
	json_int(j, "inside_tid", thread->inside);
	json_string(j, "name", thread->name);
	json_string(j, "state", running ? "running" : session_state_name(thread->state.wait.state));
	dump_name_state(thread, cause, sizeof(cause));
	json_string(j, "cause", cause);
	json_bool(j, "has_gil", thread->has_gil);
	if (holder)
		json_int(j, "gil_holder", holder->tid);
	else
		json_null(j, "gil_holder");
	json_bool(j, "python", thread->is_python);
	json_bool(j, "moving", thread->is_moving);
	write_change(process, before, thread, j);
	json_begin_array(j, "frames");
	for (size_t i = 0; frames && i < count; i++)
		write_frame(process, frames[i], j);
	json_end_array(j);
	json_end_object(j);
	free(frames);
}

void dump_json(const struct dump_process *process, const struct dump_process *before, struct json *j)
{
	const struct ps_row *row = process->row;

	json_begin_object(j, NULL);
	json_int(j, "pid", row->process.pid);
	json_int(j, "inside_pid", row->process.inside);
	json_string(j, "command", row->command);
	json_string(j, "version", row->python.version);
	if (row->container.id[0])
		json_string(j, "container", row->container.name);
	else
		json_null(j, "container");
	json_double(j, "age_s", process->age_s);
	json_double(j, "cpu_s", process->cpu_s);
	json_uint(j, "resident_bytes", process->rss_kib * 1024);
	if (process->stood_s > 0)
		json_double(j, "stood_still_s", process->stood_s);
	else
		json_null(j, "stood_still_s");
	if (before) {
		json_double(j, "since_s", process->at_s - before->at_s);
		json_uint(j, "ended", dump_count_ended(before, process));
	} else {
		json_null(j, "since_s");
		json_null(j, "ended");
	}
	json_begin_array(j, "threads");
	for (size_t i = 0; i < process->count; i++)
		write_thread(process, before, &process->threads[i], j);
	json_end_array(j);
	json_end_object(j);
	json_line(j);
}
