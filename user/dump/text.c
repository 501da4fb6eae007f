// SPDX-License-Identifier: Apache-2.0
/* Prints a picture of a process as tracebacks, one for each thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dump/dump.h"
#include "dump/findings.h"
#include "dump/identity.h"
#include "dump/print.h"
#include "helper/helper.h"

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

static void print_core(const struct dump_process *process, FILE *out)
{
	const struct dump_core_facts core = dump_core_facts(process->core);
	char name[16];

	fprintf(out, ", %zu thread%s", process->count, process->count == 1 ? "" : "s");
	if (!core.signal)
		fputs(", not ended by a signal", out);
	else if (dump_core_signal_name(core.signal, name, sizeof(name)))
		fprintf(out, ", thread %d had %s", core.signalled, name);
	else
		fprintf(out, ", thread %d had signal %d", core.signalled, core.signal);
	if (core.has_address)
		fprintf(out, " at address %#" PRIx64, core.address);
	if (core.missing)
		fprintf(out, "\nThe file is cut off: the last %" PRIu64 " bytes of what it had are missing",
			core.missing);
}

static void print_usage(const struct dump_process *process, FILE *out)
{
	fputs(", up ", out);
	print_seconds(process->age_s, out);
	fputs(", CPU time ", out);
	print_seconds(process->cpu_s, out);
	fprintf(out, ", %.1f MiB resident, %zu thread%s", (double)process->rss_kib / 1024, process->count,
		process->count == 1 ? "" : "s");
	if (process->nr_interps > 1)
		fprintf(out, ", %u interpreters", process->nr_interps);
}

/* Says what dump_collects() does not tell of any thread. */
static void print_collection(const struct dump_process *process, FILE *out)
{
	bool known;

	if (!dump_is_collecting(process, &known))
		return;
	for (size_t i = 0; i < process->count; i++) {
		if (dump_collects(process, &process->threads[i], &known))
			return;
	}
	fputs("Garbage is being collected; this Python does not tell by which thread\n", out);
}

/* Prints who started the process, the outermost first. */
static void print_parents(const struct dump_process *process, FILE *out)
{
	if (!process->with_parents || !process->parents.count)
		return;
	fputs("Process tree: ", out);
	for (size_t i = process->parents.count; i-- > 0;) {
		text_print(process->parents.items[i].comm, out);
		fprintf(out, " (%d) > ", process->parents.items[i].pid);
	}
	fputs("this one\n", out);
}

static void print_head(const struct dump_process *process, FILE *out)
{
	const struct ps_row *row = process->row;

	if (process->core) {
		fputs("Core file ", out);
		text_print(dump_core_facts(process->core).file, out);
		fprintf(out, " of process %d: ", row->process.pid);
	} else {
		fprintf(out, "Process %d: ", row->process.pid);
	}
	text_print(row->command, out);
	fputs("\nPython ", out);
	text_print(row->python.version, out);
	for (size_t i = 0; i < row->nr_more; i++) {
		fputs(" and ", out);
		text_print(row->more[i].version, out);
	}
	if (process->core)
		print_core(process, out);
	else
		print_usage(process, out);
	if (row->container_unread)
		fputs(", container not known", out);
	if (row->container.id[0]) {
		fputs(", container ", out);
		text_print(row->container.name, out);
	}
	if (process->stood_s > 0)
		fprintf(out, ", stood still for %.1f ms", process->stood_s * 1000);
	fputc('\n', out);
	print_parents(process, out);
}

/* Where the variables of a thread are printed. */
struct locals {
	const struct dump_process *process;
	struct dump_above above;
	FILE *out;
};

static void print_local(void *arg, const struct dump_local *local)
{
	struct locals *to = arg;
	FILE *out = to->out;

	fputs("      ", out);
	if (local->kind == DUMP_LOCAL_MOVING) {
		fputs("[variables not shown: the function ended, or may have, while they were read]\n", out);
		return;
	}
	if (local->kind == DUMP_LOCAL_BEYOND) {
		fputs("[further variables not shown: limit of size or time reached]\n", out);
		return;
	}
	text_print(local->name, out);
	fputs(" = ", out);
	dump_print_value(to->process, local, &to->above, out);
	fputc('\n', out);
}

/* Returns the columns that the first bytes of a line take when they are printed. */
static size_t printed_width(const char *text, size_t size)
{
	char *part = strndup(text, size), *printed = part ? text_printable(part) : NULL;
	size_t width = printed ? text_width(printed) : 0;

	free(part);
	free(printed);
	return width;
}

/* Marks the expression that is executed below its line, unless it is all of it, as Python's tracebacks do. */
static void print_carets(const struct profile_frame *frame, const struct dump_line *line, int indent, FILE *out)
{
	size_t size = strlen(line->text), begin = (size_t)frame->column, end = line->begin + size, from, width;

	if (frame->end_line == frame->line && (size_t)frame->end_column < end)
		end = (size_t)frame->end_column;
	if (!frame->end_line || begin < line->begin || begin >= end ||
	    (begin == line->begin && end == line->begin + size))
		return;
	from = printed_width(line->text, begin - line->begin);
	width = printed_width(line->text, end - line->begin) - from;
	fprintf(out, "%*s", indent + (int)from, "");
	for (size_t i = 0; i < width; i++)
		fputc('^', out);
	fputc('\n', out);
}

static void print_frame(const struct dump_process *process, uint32_t index, int indent, FILE *out)
{
	const struct profile_frame *frame = profile_frame_at(process->stacks, index);
	const char *name = profile_string(process->stacks, frame->name);

	fprintf(out, "%*s", indent, "");
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
	if (process->lines[index].text) {
		fprintf(out, "%*s", indent + 2, "");
		text_print(process->lines[index].text, out);
		fputc('\n', out);
		print_carets(frame, &process->lines[index], indent + 2, out);
	}
}

/* The interpreter's own are marked, and the files of others named without their folders. */
static void print_native(const struct dump_process *process, const struct dump_native_frame *frame, int indent,
			 FILE *out)
{
	const char *slash = strrchr(frame->file, '/');
	char address[24];

	snprintf(address, sizeof(address), "%#" PRIx64, frame->pc);
	fprintf(out, "%*sC ", indent, "");
	text_print(frame->name[0] ? frame->name : address, out);
	if (dump_is_interpreter(process, frame)) {
		fputs(" [interpreter]", out);
	} else {
		fputs(" in ", out);
		text_print(!frame->file[0] ? "no file" : slash ? slash + 1 : frame->file, out);
	}
	fputc('\n', out);
}

/* Prints the native frames that a frame of Python called; with the innermost last, as those. */
static void print_called(const struct dump_process *process, const struct dump_thread *thread, uint32_t after,
			 bool reverse, int indent, FILE *out)
{
	const struct dump_native *native = &thread->native;

	for (size_t i = 0; i < native->count; i++) {
		const struct dump_native_frame *frame = &native->frames[reverse ? i : native->count - 1 - i];

		if (!frame->is_loop && frame->after == after)
			print_native(process, frame, indent, out);
	}
}

static void print_unmatched(const struct dump_process *process, const struct dump_thread *thread, bool reverse,
			    FILE *out)
{
	const struct dump_native *native = &thread->native;

	fputs(native->is_whole ? "  Native stack, which does not fit Python's:\n"
			       : "  Native stack, as far as it could be followed:\n",
	      out);
	for (size_t i = 0; i < native->count; i++)
		print_native(process, &native->frames[reverse ? i : native->count - 1 - i], 4, out);
}

bool dump_is_same_line(const struct dump_process *process, uint32_t a, uint32_t b)
{
	const struct profile_frame *x = profile_frame_at(process->stacks, a), *y = profile_frame_at(process->stacks, b);

	return a == b || (x->kind == y->kind && x->name == y->name && x->file == y->file && x->line == y->line &&
			  x->first_line == y->first_line);
}

void dump_print_repeats(size_t equal, int indent, FILE *out)
{
	if (equal > DUMP_EQUAL_FRAMES)
		fprintf(out, "%*s[Previous line repeated %zu more time%s]\n", indent, "", equal - DUMP_EQUAL_FRAMES,
			equal == DUMP_EQUAL_FRAMES + 1 ? "" : "s");
}

static void print_traceback(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
			    bool reverse, int indent, FILE *out)
{
	size_t count, equal = 0;
	uint32_t *frames = dump_frames(process, stack, &count);
	bool merged = thread && thread->native.fits;
	struct locals locals = {.process = process, .out = out};

	dump_above_init(&locals.above);
	if (merged && !reverse)
		print_called(process, thread, DUMP_NO_FRAME, false, indent, out);
	for (size_t i = 0; frames && i < count; i++) {
		size_t at = reverse ? count - 1 - i : i;
		bool last =
			i + 1 == count || !dump_is_same_line(process, frames[reverse ? at - 1 : at + 1], frames[at]);

		if (equal++ < DUMP_EQUAL_FRAMES) {
			if (merged && reverse)
				print_called(process, thread, (uint32_t)at, true, indent, out);
			print_frame(process, frames[at], indent, out);
			if (thread)
				dump_each_local(thread, at, print_local, &locals);
			if (merged && !reverse)
				print_called(process, thread, (uint32_t)at, false, indent, out);
		}
		if (!last)
			continue;
		dump_print_repeats(equal, indent, out);
		equal = 0;
	}
	if (merged && reverse)
		print_called(process, thread, DUMP_NO_FRAME, true, indent, out);
	else if (thread && thread->native.count && !merged)
		print_unmatched(process, thread, reverse, out);
	dump_above_free(&locals.above);
	free(frames);
}

void dump_print_stack(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
		      enum dump_style style, int indent, FILE *out)
{
	if (style == DUMP_SHORT)
		dump_print_short_stack(process, stack, indent, out);
	else
		print_traceback(process, thread, stack, style == DUMP_REVERSED, indent, out);
}

static void print_change(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, FILE *out)
{
	static const char *const words[] = {
		[DUMP_CHANGE_NONE] = ", has not run for ",
		[DUMP_CHANGE_SAME_PLACE] = ", where it was",
		[DUMP_CHANGE_MOVED] = ", moved",
		[DUMP_CHANGE_NEW] = ", new",
		[DUMP_CHANGE_UNKNOWN] = "",
	};
	enum dump_change change = dump_compare(before, process, thread);

	fputs(words[change], out);
	if (change == DUMP_CHANGE_NONE)
		print_seconds(process->at_s - before->at_s, out);
}

static void print_facts(const struct dump_process *process, const struct dump_thread *thread, FILE *out)
{
	bool known;

	if (thread->is_idle)
		fputs(", waits for work", out);
	if (thread->facts.is_daemon)
		fputs(", daemon", out);
	if (thread->in_subinterpreter)
		fputs(", in a subinterpreter", out);
	if (thread->facts.has_exception) {
		fputs(", handling ", out);
		text_print(thread->facts.exception[0] ? thread->facts.exception : "an exception", out);
	}
	if (dump_collects(process, thread, &known))
		fputs(", collecting garbage", out);
}

static void print_joined(const struct dump_thread *joined, FILE *out)
{
	fprintf(out, ", until thread %d \"", joined->tid);
	text_print(joined->name, out);
	fputs("\" ends", out);
}

void dump_print_doing(const struct dump_process *process, const struct dump_process *before,
		      const struct dump_thread *thread, FILE *out)
{
	const struct dump_thread *holder = dump_find_holder(process, thread);
	const struct dump_thread *unsure = dump_find_unsure_holder(process, thread);
	const struct dump_thread *joined = dump_find_joined(process, thread);
	char state[DUMP_STATE_NAME];

	dump_name_state(thread, state, sizeof(state));
	text_print(state, out);
	if (holder == thread)
		fputs(", which it has itself", out);
	else if (holder)
		fprintf(out, ", which thread %d has", holder->tid);
	else if (unsure)
		fprintf(out, ", which thread %d may have", unsure->tid);
	if (joined)
		print_joined(joined, out);
	if (thread->has_gil)
		fputs(", has the GIL", out);
	print_facts(process, thread, out);
	if (!thread->is_python)
		fputs(", not a thread of Python", out);
	else if (thread->is_moving)
		fputs(", moving: it ran while its stack was read, which may mix two moments", out);
	if (thread->unread)
		fprintf(out, ", not read: %s", helper_describe_error(thread->unread));
	if (before)
		print_change(process, before, thread, out);
	fputc('\n', out);
}

void dump_print_thread_stack(const struct dump_process *process, const struct dump_thread *thread,
			     enum dump_style style, FILE *out)
{
	if (thread->is_missing)
		fputs("  [stack not shown: the core file does not have the thread's memory]\n", out);
	else if (thread->is_python && thread->unread)
		fputs("  [stack not shown: it could not be read]\n", out);
	else if (thread->is_python && thread->stack == PROFILE_ROOT)
		fputs("  no Python function\n", out);
	else
		dump_print_stack(process, thread, thread->stack, style, 2, out);
	if (thread->native_unread)
		fputs("  [native frames not shown: they could not be read]\n", out);
	dump_print_greenlets(process, thread, style, out);
}

void dump_print_thread_name(const struct dump_thread *thread, FILE *out)
{
	fprintf(out, "Thread %d", thread->tid);
	if (thread->inside != thread->tid)
		fprintf(out, " (%d inside)", thread->inside);
	fputs(" \"", out);
	text_print(thread->name, out);
	fputs("\": ", out);
}

static void print_thread(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, enum dump_style style, FILE *out)
{
	fputc('\n', out);
	dump_print_thread_name(thread, out);
	dump_print_doing(process, before, thread, out);
	dump_print_thread_stack(process, thread, style, out);
}

/* Says how many threads are in which way what they were. */
static void print_changes(const struct dump_process *process, const struct dump_process *before, FILE *out)
{
	size_t counts[DUMP_CHANGES] = {0};

	for (size_t i = 0; i < process->count; i++)
		counts[dump_compare(before, process, &process->threads[i])]++;
	fputs("Since the picture ", out);
	print_seconds(process->at_s - before->at_s, out);
	fprintf(out, " ago: %zu not run, %zu in the same place, %zu moved, %zu new, %zu ended",
		counts[DUMP_CHANGE_NONE], counts[DUMP_CHANGE_SAME_PLACE], counts[DUMP_CHANGE_MOVED],
		counts[DUMP_CHANGE_NEW], dump_count_ended(before, process));
	if (counts[DUMP_CHANGE_UNKNOWN])
		fprintf(out, ", of %zu it is not known", counts[DUMP_CHANGE_UNKNOWN]);
	fputc('\n', out);
}

void dump_text(const struct dump_process *process, const struct dump_process *before, enum dump_style style, FILE *out)
{
	print_head(process, out);
	if (process->incomplete)
		fprintf(out, "Not all of it could be read: %s\n", helper_describe_error(process->incomplete));
	if (before)
		print_changes(process, before, out);
	print_collection(process, out);
	dump_print_findings(process, out);
	dump_print_greenlets_left_out(process, out);
	if (style == DUMP_SHORT)
		dump_print_short(process, before, out);
	for (size_t i = 0; style != DUMP_SHORT && i < process->count; i++)
		print_thread(process, before, &process->threads[i], style, out);
	dump_print_tasks(process, style, out);
}
