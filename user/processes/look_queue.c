// SPDX-License-Identifier: Apache-2.0
/* The list of processes to look at, and which of them is next. */
#include <stddef.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "helper/helper.h"
#include "processes/internal.h"

/* Each second that a process waits for its look is set against this many seconds that its user's processes have taken.
 */
#define AGED_PER_S 0.1

void processes_stop_looking(struct processes *p, struct processes_record *process)
{
	if (process->next_look <= 0)
		return;
	*(process->prev ? &process->prev->next : &p->looking) = process->next;
	*(process->next ? &process->next->prev : &p->last_looking) = process->prev;
	process->next = process->prev = NULL;
	process->next_look = 0;
}

void processes_schedule_look(struct processes *p, struct processes_record *process, double when)
{
	if (process->next_look > 0) {
		if (when < process->next_look)
			process->next_look = when;
		return;
	}
	process->next_look = when;
	process->prev = p->last_looking;
	*(process->prev ? &process->prev->next : &p->looking) = process;
	p->last_looking = process;
}

uid_t processes_get_user(struct processes_record *process)
{
	struct procfs_status status;

	if (!process->user_known && !procfs_read_status(process->pid, &status)) {
		process->user = status.uid;
		process->user_known = true;
	}
	return process->user;
}

/*
 * Returns the process that the helper's answer is about, if that answer is still needed; else discards the answer. That
 * of a run beside this one stays for it.
 */
static struct processes_record *find_answered(const struct processes *p)
{
	struct helper_subject subject;
	struct processes_record *process;

	while (helper_has_answer(&subject) && kernel_owns_proc_id(p->kernel, subject.life)) {
		process = processes_find_record(p, subject.life);
		if (process && process->next_look > 0 && (!process->nr_runtimes || process->look_further))
			return process;
		helper_discard(subject);
	}
	return NULL;
}

struct processes_record *processes_choose_look(const struct processes *p, double now)
{
	struct processes_record *found = find_answered(p);
	double least = 0;

	if (found)
		return found;
	for (struct processes_record *process = p->looking; process; process = process->next) {
		double used = 0;

		if (process->next_look > now)
			continue;
		if (helper_any_user_cost())
			used = helper_user_cost_s(processes_get_user(process)) -
			       AGED_PER_S * (now - process->next_look);
		if (!found || used < least) {
			found = process;
			least = used;
		}
		if (used <= 0)
			break;
	}
	return found;
}

double processes_get_next_look(const struct processes *p)
{
	const double now = clock_s(CLOCK_MONOTONIC);
	const double soon = now + (p->options.patient ? LOOK_PATIENT_S : LOOK_OFTEN_S);
	double next = 1e18;
	bool looking = false;

	for (const struct processes_record *process = p->looking; process; process = process->next) {
		if (process->next_look < next)
			next = process->next_look;
		looking |= process->state == PROCESSES_LOOKING;
	}
	if (looking && now < p->starting_until && next > soon)
		next = soon;
	return next < p->busy_until ? p->busy_until : next;
}
