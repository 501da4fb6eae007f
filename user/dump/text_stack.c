// SPDX-License-Identifier: Apache-2.0
/* Prints stacks as text: with a line for each function, or as tracebacks with variables and native frames. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "dump/dump.h"
#include "dump/identity.h"
#include "dump/print.h"

/* As many equal frames are printed as Python's traceback module does (_RECURSIVE_CUTOFF), then how many follow. */
#define EQUAL_FRAMES 3

/* Functions of the standard library that only call what the program gave them. */
struct boilerplate {
	const char *file, *module;
	const char
		*functions[8]; /* as they are called from 3.11 on; before, without the class; none: all of the file */
};

static const struct boilerplate boilerplates[] = {
	{"threading.py",
	 "threading",
	 {"Thread._bootstrap", "Thread._bootstrap_inner", "Thread.__bootstrap", "Thread.__bootstrap_inner",
	  "Thread.run"}},
	{"asyncio/runners.py", "asyncio", {"Runner.run"}},
	{"asyncio/base_events.py",
	 "asyncio",
	 {"BaseEventLoop.run_until_complete", "BaseEventLoop.run_forever", "BaseEventLoop._run_once"}},
	{"asyncio/events.py", "asyncio", {"Handle._run"}},
	{"concurrent/futures/thread.py", "concurrent.futures", {"_worker", "_WorkItem.run", "WorkerContext.run"}},
	{"runpy.py", "runpy", {NULL}},
	{"<frozen runpy>", "runpy", {NULL}},
};

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

/* Returns whether two frames are at the same line of a function, in whichever expression. */
static bool is_same_line(const struct dump_process *process, uint32_t a, uint32_t b)
{
	const struct profile_frame *x = profile_frame_at(process->stacks, a), *y = profile_frame_at(process->stacks, b);

	return a == b || (x->kind == y->kind && x->name == y->name && x->file == y->file && x->line == y->line &&
			  x->first_line == y->first_line);
}

/* Says how many of the equal frames were not printed. */
static void print_repeats(size_t equal, int indent, FILE *out)
{
	if (equal > EQUAL_FRAMES)
		fprintf(out, "%*s[Previous line repeated %zu more time%s]\n", indent, "", equal - EQUAL_FRAMES,
			equal == EQUAL_FRAMES + 1 ? "" : "s");
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
		bool last = i + 1 == count || !is_same_line(process, frames[reverse ? at - 1 : at + 1], frames[at]);

		if (equal++ < EQUAL_FRAMES) {
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
		print_repeats(equal, indent, out);
		equal = 0;
	}
	if (merged && reverse)
		print_called(process, thread, DUMP_NO_FRAME, true, indent, out);
	else if (thread && thread->native.count && !merged)
		print_unmatched(process, thread, reverse, out);
	dump_above_free(&locals.above);
	free(frames);
}

static bool has_function(const struct boilerplate *b, const char *name)
{
	for (size_t i = 0; i < sizeof(b->functions) / sizeof(*b->functions) && b->functions[i]; i++) {
		const char *dot = strrchr(b->functions[i], '.');

		if (!strcmp(name, b->functions[i]) || !strcmp(name, dot ? dot + 1 : b->functions[i]))
			return true;
	}
	return !b->functions[0];
}

/* Returns the module of a frame that tells nothing of the program, or NULL. */
static const char *boilerplate_of(const struct dump_process *process, uint32_t index)
{
	const struct profile_frame *frame = profile_frame_at(process->stacks, index);
	const char *file = profile_string(process->stacks, frame->file);

	if (frame->kind != PROFILE_PYTHON || profile_origin_of(process->stacks, frame->file) != PROFILE_STDLIB)
		return NULL;
	for (size_t i = 0; i < sizeof(boilerplates) / sizeof(*boilerplates); i++) {
		if (!strcmp(file, boilerplates[i].file) &&
		    has_function(&boilerplates[i], profile_string(process->stacks, frame->name)))
			return boilerplates[i].module;
	}
	return NULL;
}

static void print_short_frame(const struct dump_process *process, uint32_t index, int indent, FILE *out)
{
	const struct profile_frame *frame = profile_frame_at(process->stacks, index);

	fprintf(out, "%*s", indent, "");
	text_print(profile_string(process->stacks, frame->name), out);
	if (frame->kind == PROFILE_PYTHON) {
		fputs(" (", out);
		text_print(profile_string(process->stacks, frame->file), out);
		if (frame->line != PROFILE_NO_LINE)
			fprintf(out, ":%" PRId32, frame->line);
		fputc(')', out);
	}
	fputc('\n', out);
}

/* Prints in one line the boilerplate from `at` on, of frames whose last is the leaf. Returns how many frames it is. */
static size_t print_boilerplate(const struct dump_process *process, const uint32_t *frames, size_t at, int indent,
				FILE *out)
{
	const char *module, *last = NULL;
	size_t count = 0;

	while (count <= at && boilerplate_of(process, frames[at - count]))
		count++;
	if (!count)
		return 0;
	fprintf(out, "%*s[%zu frame%s of ", indent, "", count, count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i++) {
		module = boilerplate_of(process, frames[at - i]);
		if (!last || strcmp(module, last))
			fprintf(out, "%s%s", last ? ", " : "", module);
		last = module;
	}
	fputs("]\n", out);
	return count;
}

static void print_short_stack(const struct dump_process *process, uint32_t stack, int indent, FILE *out)
{
	size_t left, equal = 0, folded;
	uint32_t *frames = dump_frames(process, stack, &left);
	bool any = false; /* where it is has been printed, so that boilerplate is not all */

	while (frames && left) {
		size_t at = left - 1;

		folded = any ? print_boilerplate(process, frames, at, indent, out) : 0;
		if (folded) {
			left -= folded;
			continue;
		}
		any = any || profile_frame_at(process->stacks, frames[at])->kind == PROFILE_PYTHON;
		if (equal++ < EQUAL_FRAMES)
			print_short_frame(process, frames[at], indent, out);
		if (!at || !is_same_line(process, frames[at - 1], frames[at])) {
			print_repeats(equal, indent, out);
			equal = 0;
		}
		left--;
	}
	free(frames);
}

void dump_print_stack(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
		      enum dump_style style, int indent, FILE *out)
{
	if (style == DUMP_SHORT)
		print_short_stack(process, stack, indent, out);
	else
		print_traceback(process, thread, stack, style == DUMP_REVERSED, indent, out);
}
