// SPDX-License-Identifier: Apache-2.0
/* The tables of records: by proc_id, and by PID. */
#include <errno.h>
#include <stdlib.h>

#include "base/intern.h"
#include "processes/internal.h"

/* An item of the table of PIDs. */
struct by_pid {
	pid_t pid;
	struct processes_record *record;
};

void processes_init_records(struct processes *p)
{
	intern_init(&p->records, sizeof(struct processes_by_id), sizeof(uint64_t));
	intern_init(&p->by_pid, sizeof(struct by_pid), sizeof(pid_t));
}

static void free_record(struct processes_record *process)
{
	free(process->cmdline);
	free(process->container);
	free(process->service);
	free(process->own);
	free(process->attributes);
	free(process->version);
	free(process->program);
	for (size_t i = 0; i < PYBPF_MAX_RUNTIMES; i++)
		free(process->unproved[i]);
	free(process->mismatch_text);
	free(process);
}

void processes_free_records(struct processes *p)
{
	for (uint32_t i = 0; i < p->records.count; i++)
		free_record(processes_record_at(p, i));
	intern_free(&p->records);
	intern_free(&p->by_pid);
}

struct processes_record *processes_find_record(const struct processes *p, uint64_t proc_id)
{
	uint32_t i = intern_find(&p->records, &proc_id);

	return i == INTERN_NONE ? NULL : processes_record_at(p, i);
}

struct processes_record *processes_find_pid(const struct processes *p, pid_t pid)
{
	uint32_t i = intern_find(&p->by_pid, &pid);

	return i == INTERN_NONE ? NULL : ((const struct by_pid *)intern_item(&p->by_pid, i))->record;
}

int processes_insert_record(struct processes *p, struct processes_record *process)
{
	const struct processes_by_id of_id = {.proc_id = process->proc_id, .record = process};
	const struct by_pid of_pid = {.pid = process->pid, .record = process};
	bool added;
	uint32_t id_index = intern_add(&p->records, &of_id, &added), pid_index;

	if (id_index == INTERN_NONE)
		return -ENOMEM;
	pid_index = intern_add(&p->by_pid, &of_pid, &added);
	if (pid_index == INTERN_NONE) {
		intern_remove(&p->records, id_index);
		return -ENOMEM;
	}
	((struct by_pid *)intern_item(&p->by_pid, pid_index))->record = process;
	return 0;
}

void processes_remove_record(struct processes *p, struct processes_record *process)
{
	if (processes_find_pid(p, process->pid) == process)
		intern_remove(&p->by_pid, intern_find(&p->by_pid, &process->pid));
	intern_remove(&p->records, intern_find(&p->records, &process->proc_id));
	free_record(process);
}
