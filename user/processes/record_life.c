// SPDX-License-Identifier: Apache-2.0
/* Makes the records of processes, hands what they count on after an exec, and ends them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/scan.h"
#include "processes/internal.h"

void processes_end_record(struct processes *p, struct processes_record *process)
{
	if (process->ended)
		return;
	processes_label_again(p, process);
	processes_report_mismatch(p, process);
	process->ended = true;
	process->ended_at = clock_s(CLOCK_MONOTONIC);
	processes_stop_looking(p, process);
	p->living--;
}

void processes_hand_on(struct processes_record *before, struct processes_record *process)
{
	/* A fork that was made only to execute another program does not count as a Python process. */
	if (before->copy)
		before->counted_elsewhere = true;
	else
		process->counted_elsewhere = before->counted_elsewhere || before->state == PROCESSES_PYTHON;
	before->replaced = true;
	process->sampled |= before->sampled;
	process->cpu_begin_ns = before->cpu_begin_ns;
	process->cpu_begin_known = before->cpu_begin_known;
}

struct processes_record *processes_add_record(struct processes *p, const struct pybpf_process_event *event)
{
	struct processes_record *process = processes_find_record(p, event->proc_id), *before;

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		goto no_memory;
	process->proc_id = event->proc_id;
	process->pid = (pid_t)event->tgid;
	process->inner_pid = (pid_t)event->inner_tgid;
	process->start = event->start;
	process->wanted = event->wanted;
	process->added_at = clock_s(CLOCK_MONOTONIC);
	process->started = process->start >= p->begin;
	process->file = event->file;
	process->kind = event->kind;
	memcpy(process->comm, event->comm, sizeof(process->comm));
	before = processes_find_pid(p, process->pid);
	if (processes_insert_record(p, process))
		goto no_memory;
	/* No event told the end of `before`: it was lost, or the entry was replaced (processes_repair_entry). */
	if (before && before->proc_id != event->other_id) {
		/* An exec keeps the time of the start: it was an exec of which no event told. */
		if (before->start == process->start)
			processes_hand_on(before, process);
		processes_end_record(p, before);
	}
	p->living++;
	return process;
no_memory:
	free(process);
	p->error = -ENOMEM;
	return NULL;
}

struct processes_record *processes_get_record(struct processes *p, pid_t pid)
{
	struct processes_record *process = processes_find_pid(p, pid);
	struct pybpf_process_event event = {.tgid = (uint32_t)pid, .wanted = !p->options.filtered};
	struct scan_process described;
	struct pybpf_proc entry;

	/* A record that has ended may belong to an earlier process of that PID. */
	if (process && !process->ended)
		return process;
	if (kernel_get_process(p->kernel, pid, &entry) || scan_read_process(pid, &described))
		return NULL;
	event.proc_id = entry.proc_id;
	event.start = entry.start;
	event.inner_tgid = (uint32_t)described.inside;
	snprintf(event.comm, sizeof(event.comm), "%.15s", described.comm);
	process = processes_add_record(p, &event);
	if (!process)
		return NULL;
	processes_label_record(p, process, NULL);
	processes_note_parents(p, process, NULL);
	/* Asks the kernel to report its end, too. */
	entry.reported = true;
	if (processes_put_entry(p, process, &entry) == -ENOENT)
		processes_end_record(p, process);
	return process;
}
