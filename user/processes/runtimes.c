// SPDX-License-Identifier: Apache-2.0
/* Processes with more than one Python: a program that has one and loads a plugin that contains another. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "pybpf.h"
#include "base/remote.h"
#include "processes/internal.h"

/*
 * Greatest age of a fork that was made after its parent had mapped a new Python, but whose event was read before that
 * Python was known.
 */
#define COPIED_S 1.0

/* Returns whether the library was unmapped: a next Python of the same layout then takes the place of this one. */
static bool is_unmapped(const struct processes_record *process, const struct pybpf_runtime *runtime)
{
	uint64_t head;

	return remote_read(process->pid, runtime->interp_head, &head, sizeof(head)) == -EFAULT;
}

static int find_place(const struct processes_record *process, const struct pybpf_proc *entry,
		      const struct pybpf_runtime *runtime)
{
	for (uint32_t i = 0; i < entry->nr_runtimes; i++) {
		if (entry->runtimes[i].interp_head == runtime->interp_head)
			return -EEXIST;
	}
	for (uint32_t i = 0; i < entry->nr_runtimes; i++) {
		if (entry->runtimes[i].layout == runtime->layout && is_unmapped(process, &entry->runtimes[i]))
			return (int)i;
	}
	return entry->nr_runtimes < PYBPF_MAX_RUNTIMES ? (int)entry->nr_runtimes : -ENOSPC;
}

static void look_at_copies(struct processes *p)
{
	double now = clock_s(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < p->records.count; i++) {
		struct processes_record *process = processes_record_at(p, i);

		if (process->copy && !process->ended && process->added_at > now - COPIED_S)
			processes_look_again(p, process);
	}
}

bool processes_has_runtime(const struct processes *p, const struct processes_record *process,
			   const struct pybpf_runtime *place)
{
	struct pybpf_proc entry;
	int err = processes_get_entry(p, process, &entry);

	for (uint32_t i = 0; !err && i < entry.nr_runtimes; i++) {
		if (entry.runtimes[i].interp_head == place->interp_head)
			return true;
	}
	return err;
}

int processes_add_runtime(struct processes *p, struct processes_record *process, const struct pybpf_runtime *place)
{
	const struct pybpf_layout *layout = kernel_get_layout(p->kernel, place->layout);
	struct pybpf_proc entry;
	int err = processes_get_entry(p, process, &entry), index;

	if (err)
		return err;
	index = find_place(process, &entry, place);
	if (index == -ENOSPC)
		log_printf(p->options.all ? LOG_INFO : LOG_WARN,
			   "process %d (%.16s) has more than %d Pythons in it; its Python %u.%u is not sampled",
			   process->pid, process->comm, PYBPF_MAX_RUNTIMES, layout->major, layout->minor);
	if (index < 0)
		return index;
	/* Called before the kernel's entry changes, as the first samples may come at once. */
	pysym_add_runtime(p->pysym, process->proc_id, (uint32_t)index, layout);
	process->layouts[index] = place->layout;
	if ((uint32_t)index >= process->nr_runtimes)
		process->nr_runtimes = (uint32_t)index + 1;
	entry.runtimes[index] = *place;
	if ((uint32_t)index >= entry.nr_runtimes)
		entry.nr_runtimes = (uint32_t)index + 1;
	err = processes_put_entry(p, process, &entry);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	look_at_copies(p);
	return index;
}

void processes_place_asyncio(const struct processes *p, struct processes_record *process,
			     const struct pybpf_runtime *place)
{
	struct pybpf_proc entry;

	if (!place->asyncio.loaded || processes_get_entry(p, process, &entry))
		return;
	process->tasks_since = 0;
	for (uint32_t i = 0; i < entry.nr_runtimes; i++) {
		if (entry.runtimes[i].interp_head == place->interp_head && !entry.runtimes[i].asyncio.current_tasks)
			entry.runtimes[i].asyncio = place->asyncio;
	}
	processes_put_entry(p, process, &entry);
}

void processes_copy_runtimes(struct processes *p, struct processes_record *process,
			     const struct processes_record *parent)
{
	struct pybpf_proc entry, from;

	for (uint32_t i = 1; i < parent->nr_runtimes; i++) {
		process->layouts[i] = parent->layouts[i];
		pysym_add_runtime(p->pysym, process->proc_id, i, kernel_get_layout(p->kernel, parent->layouts[i]));
	}
	process->nr_runtimes = parent->nr_runtimes;
	/* The fork may have been made before the kernel knew all of the parent's Pythons. */
	if (process->nr_runtimes < 2 || processes_get_entry(p, process, &entry) ||
	    entry.nr_runtimes == process->nr_runtimes || processes_get_entry(p, parent, &from))
		return;
	memcpy(entry.runtimes, from.runtimes, sizeof(entry.runtimes));
	entry.nr_runtimes = from.nr_runtimes;
	processes_put_entry(p, process, &entry);
}

void processes_note_running(const struct processes *p, struct processes_record *process)
{
	struct pybpf_proc entry;
	uint64_t head;

	if (processes_get_entry(p, process, &entry))
		return;
	for (uint32_t i = 0; i < entry.nr_runtimes; i++) {
		if (!remote_read(process->pid, entry.runtimes[i].interp_head, &head, sizeof(head)) && head)
			process->running |= 1u << i;
	}
}

void processes_list_versions(const struct processes *p, const struct processes_record *process, char *out, size_t size)
{
	uint32_t left = process->running;
	size_t len = 0;

	for (uint32_t i = 0; left && len < size; i++) {
		const struct pybpf_layout *layout;
		int n;

		if (!(left & 1u << i))
			continue;
		layout = kernel_get_layout(p->kernel, process->layouts[i]);
		left &= ~(1u << i);
		n = snprintf(out + len, size - len, "%s%u.%u",
			     !len   ? ""
			     : left ? ", "
				    : " and ",
			     layout->major, layout->minor);
		len += n > 0 ? (size_t)n : 0;
	}
}
