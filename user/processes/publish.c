// SPDX-License-Identifier: Apache-2.0
/* Tells the kernel the state of a process: its entry in the map of processes. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/remote.h"
#include "discovery/ask.h"
#include "helper/helper.h"
#include "processes/internal.h"

int processes_get_entry(const struct processes *p, const struct processes_record *process, struct pybpf_proc *entry)
{
	int err = kernel_get_process(p->kernel, process->pid, entry);

	return err == -ENOENT || (!err && entry->proc_id != process->proc_id) ? -ESRCH : err;
}

int processes_put_entry(const struct processes *p, const struct processes_record *process,
			const struct pybpf_proc *entry)
{
	return kernel_put_process(p->kernel, process->pid, entry);
}

int processes_publish_state(const struct processes *p, const struct processes_record *process,
			    enum pybpf_proc_state state, const struct pybpf_runtime *place)
{
	struct pybpf_proc entry;
	int err = processes_get_entry(p, process, &entry);

	if (err)
		return err;
	entry.state = state;
	entry.reported = true;
	if (place) {
		entry.runtimes[0] = *place;
		entry.nr_runtimes = 1;
	}
	err = processes_put_entry(p, process, &entry);
	return err == -ENOENT ? -ESRCH : err;
}

void processes_drop_mismatched(const struct processes *p, const struct processes_record *process)
{
	struct pybpf_proc entry;

	if (processes_get_entry(p, process, &entry))
		return;
	for (uint32_t i = 0; i < entry.nr_runtimes; i++)
		entry.runtimes[i].refused = process->mismatched >> i & 1;
	processes_put_entry(p, process, &entry);
}

bool processes_repair_entry(const struct processes *p, const struct pybpf_process_event *event)
{
	const struct pybpf_proc right = {
		.mm = event->mm,
		.start = event->start,
		.proc_id = event->proc_id,
		.state = PYBPF_PROC_UNDECIDED,
		.reported = true,
	};
	pid_t pid = (pid_t)event->tgid;
	struct pybpf_proc entry;

	if (!event->other_id || kernel_get_process(p->kernel, pid, &entry) || entry.proc_id != event->other_id)
		return false;
	return kernel_put_process(p->kernel, pid, &right) == 0;
}

void processes_become_python(struct processes *p, struct processes_record *process, uint32_t layout)
{
	int err;

	processes_stop_looking(p, process);
	process->state = PROCESSES_PYTHON;
	process->layouts[0] = layout;
	process->nr_runtimes = 1;
	p->python_found = true;
	err = pysym_add_process(p->pysym, process->proc_id, process->pid, kernel_get_layout(p->kernel, layout));
	if (err)
		p->error = err;
	/* It may have been taken for another Python while it was being loaded. */
	pysym_add_runtime(p->pysym, process->proc_id, 0, kernel_get_layout(p->kernel, layout));
	if (p->options.tasks)
		processes_schedule_look(p, process, clock_s(CLOCK_MONOTONIC));
}

void processes_make_ready(struct processes *p, struct processes_record *process, const struct pybpf_runtime *place)
{
	uint64_t interpreter = 0;
	int err;

	/* Called before the entry is READY, as the first samples may come at once. */
	processes_become_python(p, process, place->layout);
	err = processes_publish_state(p, process, PYBPF_PROC_READY, place);
	if (err && err != -ESRCH)
		log_error("cannot hand process %d to the kernel: %s", process->pid, strerror(-err));
	/* If there is no interpreter yet, no sample with Python frames was missed. */
	process->known_before_run =
		!remote_read(process->pid, place->interp_head, &interpreter, sizeof(interpreter)) && !interpreter;
}

/* Returns whether the name filters let the process pass. */
static bool passes_names(const struct processes *p, const struct processes_record *process)
{
	const struct discovery_filter *names = p->options.names;
	struct container container;
	int err = -ENOENT;

	if (!names)
		return true;
	if (names->not_containers.count)
		err = discovery_ask_container_of(process->pid, &container);
	if (err && err != -ENOENT && err != -ESRCH)
		log_warn("process %d (%.16s) is left out: whether it is in a container that was excluded is not known: "
			 "%s",
			 process->pid, process->comm, helper_describe_error(err));
	else
		return discovery_filter_passes_names(names, process->pid, process->comm, err ? NULL : &container);
	return false;
}

bool processes_reject_unwanted(struct processes *p, struct processes_record *process)
{
	const bool passes = passes_names(p, process);

	if (passes && processes_is_chosen(p, process))
		return false;
	process->unchosen = passes;
	if (passes && process->service_unread)
		log_warn("process %d (%.16s) is left out: its environment, which may name its service, cannot be read",
			 process->pid, process->comm);
	processes_stop_looking(p, process);
	process->state = PROCESSES_UNWANTED;
	processes_publish_state(p, process, PYBPF_PROC_UNWANTED, NULL);
	return true;
}
