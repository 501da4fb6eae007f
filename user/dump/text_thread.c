// SPDX-License-Identifier: Apache-2.0
/* Prints what a thread is called and does, and its stacks, as text. */
#include <inttypes.h>

#include "base/text.h"
#include "dump/dump.h"
#include "dump/print.h"
#include "helper/helper.h"

void dump_print_seconds(double seconds, FILE *out)
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
		dump_print_seconds(process->at_s - before->at_s, out);
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
	else if (thread->facts.is_moving)
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
