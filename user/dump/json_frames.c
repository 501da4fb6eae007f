// SPDX-License-Identifier: Apache-2.0
/* Writes the functions of a stack as JSON, with their variables. */
#include <stdlib.h>

#include "base/json.h"
#include "dump/dump.h"
#include "dump/print.h"

/* Where the variables of a frame are written. */
struct locals {
	struct json *json;
	bool shown; /* all of them so far */
};

static void write_local(void *arg, const struct dump_local *local)
{
	static const char *const kinds[DUMP_LOCAL_KINDS] = {
		[DUMP_LOCAL_ARGUMENT] = "argument",
		[DUMP_LOCAL_LOCAL] = "local",
		[DUMP_LOCAL_CELL] = "cell",
		[DUMP_LOCAL_FREE] = "free",
	};
	struct locals *to = arg;

	if (!kinds[local->kind]) {
		to->shown = false;
		return;
	}
	json_begin_object(to->json, NULL);
	json_string(to->json, "name", local->name);
	json_string(to->json, "kind", kinds[local->kind]);
	json_string(to->json, "value", local->text);
	if (local->object)
		json_uint(to->json, "id", local->object);
	else
		json_null(to->json, "id");
	json_end_object(to->json);
}

/* Frames that are not Python's, or of which nothing is known, have no variables to show. */
static void write_locals(const struct dump_thread *thread, size_t position, struct json *j)
{
	struct locals to = {
		.json = j,
		.shown = position < thread->nr_numbers && thread->numbers[position] != DUMP_NO_FRAME,
	};

	json_begin_array(j, "locals");
	dump_each_local(thread, position, write_local, &to);
	json_end_array(j);
	json_bool(j, "locals_complete", to.shown);
}

/* Writes where the expression is, as co_positions() has it. */
static void write_span(const struct profile_frame *frame, struct json *j)
{
	static const char *const names[] = {"end_line", "column", "end_column"};
	const int32_t values[] = {frame->end_line, frame->column, frame->end_column};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (frame->end_line)
			json_int(j, names[i], values[i]);
		else
			json_null(j, names[i]);
	}
}

static void write_frame(const struct dump_process *process, const struct dump_thread *thread, size_t position,
			uint32_t index, struct json *j)
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
		write_span(frame, j);
		if (process->lines[index].text)
			json_string(j, "source", process->lines[index].text);
		else
			json_null(j, "source");
		if (process->with_locals && thread)
			write_locals(thread, position, j);
	}
	json_end_object(j);
}

void dump_write_frames(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
		       struct json *j)
{
	size_t count;
	uint32_t *frames = dump_frames(process, stack, &count);

	json_begin_array(j, "frames");
	for (size_t i = 0; frames && i < count; i++)
		write_frame(process, thread, i, frames[i], j);
	json_end_array(j);
	free(frames);
}
