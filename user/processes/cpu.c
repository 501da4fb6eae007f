// SPDX-License-Identifier: Apache-2.0
/* The CPU time that processes take while samples are taken, and which of them have samples. */
#include "base/procfs.h"
#include "processes/internal.h"

void processes_begin_cpu(struct processes *p)
{
	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		process->cpu_begin_known = !process->ended && !procfs_cpu_ns(process->pid, &process->cpu_begin_ns);
	}
}

void processes_end_cpu(struct processes *p)
{
	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		if (!process->ended && procfs_cpu_ns(process->pid, &process->cpu_ns))
			process->cpu_ns = 0;
	}
}

bool processes_get_cpu(const struct processes_record *process, uint64_t *ns)
{
	/* A process that started after sampling had begun began with 0. */
	if (!process->cpu_ns || (!process->cpu_begin_known && !process->started))
		return false;
	*ns = process->cpu_ns > process->cpu_begin_ns ? process->cpu_ns - process->cpu_begin_ns : 0;
	return true;
}

void processes_mark_sampled(struct processes *p, struct processes_record *process)
{
	struct processes_record *last = processes_find_pid(p, process->pid);

	process->sampled = true;
	/* The same process after an exec: it has samples, too. */
	if (last && last->start == process->start)
		last->sampled = true;
}

bool processes_is_unsampled(const struct processes_record *process)
{
	return process->wanted && !process->sampled && !process->replaced && process->state == PROCESSES_PYTHON;
}

void processes_visit_all(struct processes *p, void (*visit)(struct processes_record *process, void *arg), void *arg)
{
	for (uint32_t i = 0; i < p->records.count; i++)
		visit(processes_record_at(p, i), arg);
}
