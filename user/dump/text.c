// SPDX-License-Identifier: Apache-2.0
/* Prints a picture of a process as tracebacks, one for each thread. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "dump/dump.h"

/* As many equal frames are printed as Python's traceback module does (_RECURSIVE_CUTOFF), then how many follow. */
#define EQUAL_FRAMES 3

static void print_seconds(double seconds, FILE *out)
{
	uint64_t whole = seconds > 0 ? (uint64_t)seconds : 0;

	if (whole >= 86400)
		fprintf(out, "%" PRIu64 " d %" PRIu64 " h", whole / 86400, whole / 3600 % 24);
	else if (whole >= 3600)
		fprintf(out, "%" PRIu64 " h %" PRIu64 " min", whole / 3600, whole / 60 % 60);
	else if (whole >= 60)
		fprintf(out, "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
	else
		fprintf(out, "%.2f s", seconds > 0 ? seconds : 0);
}

static void print_head(const struct dump_process *process, FILE *out)
{
	const struct ps_row *row = process->row;

	fprintf(out, "Process %d: ", row->process.pid);
	text_print(row->command, out);
	fputs("\nPython ", out);
	text_print(row->python.version, out);
	for (size_t i = 0; i < row->nr_more; i++) {
		fputs(" and ", out);
		text_print(row->more[i].version, out);
	}
	fputs(", up ", out);
	print_seconds(process->age_s, out);
	fputs(", CPU time ", out);
	print_seconds(process->cpu_s, out);
	fprintf(out, ", %.1f MiB resident, %zu thread%s", (double)process->rss_kib / 1024, process->count,
		process->count == 1 ? "" : "s");
	if (row->container.id[0]) {
		fputs(", container ", out);
		text_print(row->container.name, out);
	}
	if (process->stood_s > 0)
		fprintf(out, ", stood still for %.1f ms", process->stood_s * 1000);
	fputc('\n', out);
}

static void print_frame(const struct dump_process *process, uint32_t index, FILE *out)
{
	const struct profile_frame *frame = profile_frame_at(process->stacks, index);
	const char *name = profile_string(process->stacks, frame->name);

	fputs("  ", out);
	if (frame->kind == PROFILE_PYTHON) {
		fputs("File \"", out);
		text_print(profile_string(process->stacks, frame->file), out);
		fputc('"', out);
		if (frame->line != PROFILE_NO_LINE)
			fprintf(out, ", line %" PRId32, frame->line);
		fputs(", in ", out);
	}
	text_print(name, out);
	fputc('\n', out);
	if (process->lines[index]) {
		fputs("    ", out);
		text_print(process->lines[index], out);
		fputc('\n', out);
	}
}

static void print_stack(const struct dump_process *process, uint32_t stack, bool reverse, FILE *out)
{
	size_t count, equal = 0;
	uint32_t *frames = dump_frames(process, stack, &count);

	for (size_t i = 0; frames && i < count; i++) {
		size_t at = reverse ? count - 1 - i : i;
		bool last = i + 1 == count || frames[reverse ? at - 1 : at + 1] != frames[at];

		if (equal++ < EQUAL_FRAMES)
			print_frame(process, frames[at], out);
		if (!last)
			continue;
		if (equal > EQUAL_FRAMES)
			fprintf(out, "  [Previous line repeated %zu more time%s]\n", equal - EQUAL_FRAMES,
				equal == EQUAL_FRAMES + 1 ? "" : "s");
		equal = 0;
	}
	free(frames);
}

static void print_change(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, FILE *out)
{
	static const char *const words[] = {
		[DUMP_CHANGE_NONE] = ", has not run for ",
		[DUMP_CHANGE_SAME_PLACE] = ", where it was",
		[DUMP_CHANGE_MOVED] = ", moved",
		[DUMP_CHANGE_NEW] = ", new",
	};
	enum dump_change change = dump_compare(before, process, thread);

	fputs(words[change], out);
	if (change == DUMP_CHANGE_NONE)
		print_seconds(process->at_s - before->at_s, out);
}

static void print_thread(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, bool reverse, FILE *out)
{
	const struct dump_thread *holder = dump_find_holder(process, thread);
	char state[DUMP_STATE_NAME];

	fprintf(out, "\nThread %d", thread->tid);
	if (thread->inside != thread->tid)
		fprintf(out, " (%d inside)", thread->inside);
	fputs(" \"", out);
	text_print(thread->name, out);
	fputs("\": ", out);
	dump_name_state(thread, state, sizeof(state));
	text_print(state, out);
	if (holder)
		fprintf(out, ", which thread %d has", holder->tid);
	if (thread->has_gil)
		fputs(", has the GIL", out);
	if (!thread->is_python)
		fputs(", not a thread of Python", out);
	else if (thread->is_moving)
		fputs(", moving: it ran while its stack was read, which may mix two moments", out);
	if (before)
		print_change(process, before, thread, out);
	fputc('\n', out);
	if (thread->is_python && thread->stack == PROFILE_ROOT)
		fputs("  no Python function\n", out);
	else
		print_stack(process, thread->stack, reverse, out);
}

/* Says how many threads are in which way what they were. */
static void print_changes(const struct dump_process *process, const struct dump_process *before, FILE *out)
{
	size_t counts[DUMP_CHANGE_NEW + 1] = {0};

	for (size_t i = 0; i < process->count; i++)
		counts[dump_compare(before, process, &process->threads[i])]++;
	fputs("Since the picture ", out);
	print_seconds(process->at_s - before->at_s, out);
	fprintf(out, " ago: %zu not run, %zu in the same place, %zu moved, %zu new, %zu ended\n",
		counts[DUMP_CHANGE_NONE], counts[DUMP_CHANGE_SAME_PLACE], counts[DUMP_CHANGE_MOVED],
		counts[DUMP_CHANGE_NEW], dump_count_ended(before, process));
}

void dump_text(const struct dump_process *process, const struct dump_process *before, bool reverse, FILE *out)
{
	print_head(process, out);
	if (before)
		print_changes(process, before, out);
	for (size_t i = 0; i < process->count; i++)
		print_thread(process, before, &process->threads[i], reverse, out);
}
