// SPDX-License-Identifier: Apache-2.0
/* After events or mappings were lost: finds what they would have told in the kernel's map of processes, and in /proc.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/log.h"
#include "processes/internal.h"

/* Interval between checks for losses. */
#define CHECK_S 0.05
/* Shortest interval between looks at all processes because mappings were lost: one takes some 0.3 ms a process. */
#define LOOKS_S 5.0

/* Ends the records of processes that are no longer in the kernel's map. */
static void end_vanished(struct processes *p)
{
	struct pybpf_proc entry;

	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		if (!process->ended && processes_get_entry(p, process, &entry) == -ESRCH)
			processes_end_record(p, process);
	}
}

static int note_unheard(pid_t pid, const struct pybpf_proc *entry, void *arg)
{
	struct processes *p = arg;

	if (entry->state == PYBPF_PROC_CLAIMED || (!entry->reported && !p->every_unheard) ||
	    processes_find_record(p, entry->proc_id))
		return 0;
	if (array_reserve(&p->unheard, &p->unheard_room, p->nr_unheard + 1, sizeof(*p->unheard)))
		return -ENOMEM;
	p->unheard[p->nr_unheard++] = (struct processes_unheard){pid, entry->proc_id, entry->reported};
	return 0;
}

/*
 * Makes records of the processes that had none at the last check: an event that was on its way then has been read
 * since, so that theirs was lost.
 */
static void recover_unheard(struct processes *p)
{
	for (size_t i = 0; i < p->nr_unheard && !p->error; i++) {
		const struct processes_unheard *unheard = &p->unheard[i];
		struct processes_record *process;
		struct pybpf_proc entry;

		if (processes_find_record(p, unheard->proc_id) || kernel_get_process(p->kernel, unheard->pid, &entry) ||
		    entry.proc_id != unheard->proc_id)
			continue;
		/* The record of the program before an exec has the same PID. */
		process = processes_find_pid(p, unheard->pid);
		if (process)
			processes_end_record(p, process);
		process = processes_get_record(p, unheard->pid);
		if (!process || process->proc_id != unheard->proc_id || process->ended)
			continue;
		p->counts.recovered += unheard->reported;
		processes_start_look(p, process, unheard->reported);
	}
	p->nr_unheard = 0;
}

/* Any process may have mapped a Python, also one that ran a program without Python and therefore has no record. */
static int look_at_all(struct processes *p)
{
	int err;

	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		if (!process->ended && process->state != PROCESSES_UNWANTED && process->state != PROCESSES_REFUSED)
			processes_look_soon(p, process);
	}
	p->every_unheard = true;
	err = kernel_visit_processes(p->kernel, note_unheard, p);
	p->every_unheard = false;
	return err;
}

void processes_resync(struct processes *p, double now)
{
	const struct kernel_losses before = p->losses;
	int err = 0;

	if (now < p->next_check)
		return;
	p->next_check = now + CHECK_S;
	recover_unheard(p);
	kernel_read_losses(p->kernel, &p->losses);
	if (p->losses.events != before.events || p->losses.others != before.others) {
		end_vanished(p);
		err = kernel_visit_processes(p->kernel, note_unheard, p);
	}
	p->mappings_lost |= p->losses.mappings != before.mappings;
	if (!err && p->mappings_lost && now >= p->next_looks) {
		log_info("records of mappings were lost: all processes are looked at once more");
		p->mappings_lost = false;
		p->next_looks = now + LOOKS_S;
		err = look_at_all(p);
	}
	if (err)
		p->error = err;
}
