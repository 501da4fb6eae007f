// SPDX-License-Identifier: Apache-2.0
/* Prints a snapshot of a process as tracebacks, one for each thread. */
#include <inttypes.h>

#include "base/text.h"
#include "dump/dump.h"
#include "dump/findings.h"
#include "dump/print.h"
#include "helper/helper.h"

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
	dump_print_seconds(process->age_s, out);
	fputs(", CPU time ", out);
	dump_print_seconds(process->cpu_s, out);
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
	if (process->stops.count)
		fprintf(out, ", %zu thread%s stood still for %s%.1f ms", process->stops.count,
			process->stops.count == 1 ? "" : "s", process->stops.count == 1 ? "" : "up to ",
			process->stops.longest_s * 1000);
	fputc('\n', out);
	print_parents(process, out);
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
	fputs("Since the snapshot ", out);
	dump_print_seconds(process->at_s - before->at_s, out);
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
