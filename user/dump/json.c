// SPDX-License-Identifier: Apache-2.0
/* Writes a snapshot of a process as JSON; docs/dump.md describes it. */
#include "base/json.h"

#include <stdlib.h>

#include "dump/dump.h"
#include "dump/findings.h"
#include "dump/print.h"
#include "helper/helper.h"

static void write_native(const struct dump_process *process, const struct dump_thread *thread, struct json *j)
{
	const struct dump_native *native = &thread->native;
	bool caller_known;

	if (thread->native_unread) {
		json_null(j, "native_frames");
		json_null(j, "native_whole");
		json_null(j, "native_fits");
		return;
	}
	json_begin_array(j, "native_frames");
	for (size_t i = native->count; i-- > 0;) {
		const struct dump_native_frame *frame = &native->frames[i];

		json_begin_object(j, NULL);
		if (frame->name[0])
			json_string(j, "function", frame->name);
		else
			json_null(j, "function");
		if (frame->file[0])
			json_string(j, "file", frame->file);
		else
			json_null(j, "file");
		json_uint(j, "address", frame->pc);
		json_bool(j, "interpreter", dump_is_interpreter(process, frame));
		json_bool(j, "python", frame->is_loop);
		caller_known = native->fits && frame->after != DUMP_NO_FRAME;
		if (caller_known)
			json_uint(j, "caller", frame->after);
		else
			json_null(j, "caller");
		json_end_object(j);
	}
	json_end_array(j);
	json_bool(j, "native_whole", native->is_whole);
	json_bool(j, "native_fits", native->fits);
}

static void write_change(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, struct json *j)
{
	static const char *const words[] = {
		[DUMP_CHANGE_NONE] = "none",   [DUMP_CHANGE_SAME_PLACE] = "same place",
		[DUMP_CHANGE_MOVED] = "moved", [DUMP_CHANGE_NEW] = "new",
		[DUMP_CHANGE_UNKNOWN] = NULL,
	};
	const char *word = before ? words[dump_compare(before, process, thread)] : NULL;

	if (word)
		json_string(j, "change", word);
	else
		json_null(j, "change");
}

static void write_holder(const char *name, const struct dump_thread *holder, struct json *j)
{
	if (holder)
		json_int(j, name, holder->tid);
	else
		json_null(j, name);
}

static void write_collecting(bool collecting, bool known, struct json *j)
{
	if (known)
		json_bool(j, "collecting", collecting);
	else
		json_null(j, "collecting");
}

static void write_facts(const struct dump_process *process, const struct dump_thread *thread, struct json *j)
{
	const struct dump_facts *facts = &thread->facts;
	bool known, collects = dump_collects(process, thread, &known);

	if (facts->daemon_known)
		json_bool(j, "daemon", facts->is_daemon);
	else
		json_null(j, "daemon");
	if (facts->exception_known || !thread->is_python)
		json_bool(j, "handles_exception", facts->has_exception);
	else
		json_null(j, "handles_exception");
	if (facts->has_exception && facts->exception[0])
		json_string(j, "exception", facts->exception);
	else
		json_null(j, "exception");
	write_collecting(collects, known, j);
	json_bool(j, "subinterpreter", thread->in_subinterpreter);
}

static void write_thread(const struct dump_process *process, const struct dump_process *before,
			 const struct dump_thread *thread, struct json *j)
{
	const struct dump_thread *holder = dump_find_holder(process, thread);
	bool waits_for_gil = thread->state.wait.state == PYBPF_STATE_GIL;
	char cause[DUMP_STATE_NAME];

	json_begin_object(j, NULL);
	json_int(j, "tid", thread->tid);
	json_int(j, "inside_tid", thread->inside);
	json_string(j, "name", thread->name);
	json_string(j, "state", dump_state_name(thread));
	dump_name_state(thread, cause, sizeof(cause));
	json_string(j, "cause", cause);
	json_bool(j, "has_gil", thread->has_gil);
	write_holder("gil_holder", waits_for_gil ? holder : NULL, j);
	write_holder("lock_holder", waits_for_gil ? NULL : holder, j);
	write_holder("unsure_lock_holder", dump_find_unsure_holder(process, thread), j);
	json_bool(j, "idle", thread->is_idle);
	write_holder("joins", dump_find_joined(process, thread), j);
	json_bool(j, "python", thread->is_python);
	json_bool(j, "moving", thread->facts.is_moving);
	json_bool(j, "missing", thread->is_missing);
	if (thread->unread)
		json_string(j, "unread", helper_describe_error(thread->unread));
	else
		json_null(j, "unread");
	write_facts(process, thread, j);
	write_change(process, before, thread, j);
	dump_write_frames(process, thread, thread->stack, j);
	if (process->with_native)
		write_native(process, thread, j);
	dump_write_greenlets(process, thread, j);
	json_end_object(j);
}

/* Writes each circle as the TIDs of its threads, each of which waits for the next one. */
static void write_deadlocks(const struct dump_process *process, struct json *j)
{
	uint32_t written = 0;

	json_begin_array(j, "deadlocks");
	for (size_t i = 0; i < process->count; i++) {
		const struct dump_thread *first = &process->threads[i], *at = first;

		if (first->circle <= written)
			continue;
		json_begin_array(j, NULL);
		do {
			json_int(j, NULL, at->tid);
			at = dump_find_awaited(process, at, NULL);
		} while (at && at != first);
		json_end_array(j);
		written = first->circle;
	}
	json_end_array(j);
}

static void write_usage(const struct dump_process *process, struct json *j)
{
	if (process->core) {
		json_null(j, "age_s");
		json_null(j, "cpu_s");
		json_null(j, "resident_bytes");
		return;
	}
	json_double(j, "age_s", process->age_s);
	json_double(j, "cpu_s", process->cpu_s);
	json_uint(j, "resident_bytes", process->rss_kib * 1024);
}

static void write_core(const struct dump_process *process, struct json *j)
{
	struct dump_core_facts core;
	char name[16];

	if (!process->core) {
		json_null(j, "core");
		return;
	}
	core = dump_core_facts(process->core);
	json_begin_object(j, "core");
	json_string(j, "file", core.file);
	if (core.signal)
		json_int(j, "signal", core.signal);
	else
		json_null(j, "signal");
	if (core.signal && dump_core_signal_name(core.signal, name, sizeof(name)))
		json_string(j, "signal_name", name);
	else
		json_null(j, "signal_name");
	if (core.signal)
		json_int(j, "signal_tid", core.signalled);
	else
		json_null(j, "signal_tid");
	if (core.has_address)
		json_uint(j, "address", core.address);
	else
		json_null(j, "address");
	json_uint(j, "missing_bytes", core.missing);
	json_end_object(j);
}

/* Writes who started the process, the outermost first. */
static void write_parents(const struct dump_process *process, struct json *j)
{
	json_begin_array(j, "parents");
	for (size_t i = process->parents.count; i-- > 0;) {
		const struct dump_parent *parent = &process->parents.items[i];

		json_begin_object(j, NULL);
		json_int(j, "pid", parent->pid);
		json_int(j, "inside_pid", parent->inside);
		json_string(j, "name", parent->comm);
		json_end_object(j);
	}
	json_end_array(j);
}

void dump_json(const struct dump_process *process, const struct dump_process *before, struct json *j)
{
	const struct ps_row *row = process->row;
	bool collecting, known;

	json_begin_object(j, NULL);
	json_int(j, "pid", row->process.pid);
	json_int(j, "inside_pid", row->process.inside);
	json_string(j, "command", row->command);
	json_string(j, "version", row->python.version);
	if (row->container.id[0])
		json_string(j, "container", row->container.name);
	else
		json_null(j, "container");
	write_parents(process, j);
	write_core(process, j);
	write_usage(process, j);
	if (process->stood_s > 0)
		json_double(j, "stood_still_s", process->stood_s);
	else
		json_null(j, "stood_still_s");
	json_uint(j, "threads_stopped", process->stops.count);
	if (process->stops.count)
		json_double(j, "longest_stop_s", process->stops.longest_s);
	else
		json_null(j, "longest_stop_s");
	if (before) {
		json_double(j, "since_s", process->at_s - before->at_s);
		json_uint(j, "ended", dump_count_ended(before, process));
	} else {
		json_null(j, "since_s");
		json_null(j, "ended");
	}
	json_bool(j, "complete", !process->incomplete);
	json_uint(j, "interpreters", process->nr_interps);
	collecting = dump_is_collecting(process, &known);
	write_collecting(collecting, known, j);
	write_deadlocks(process, j);
	dump_write_findings(process, j);
	json_uint(j, "greenlets_left_out", process->greenlets.changed);
	json_bool(j, "greenlets_beyond", process->greenlets.beyond);
	json_begin_array(j, "threads");
	for (size_t i = 0; i < process->count; i++)
		write_thread(process, before, &process->threads[i], j);
	json_end_array(j);
	dump_write_tasks(process, j);
	json_end_object(j);
	json_line(j);
}
