// SPDX-License-Identifier: Apache-2.0
/* The kernel of a played machine: the maps, rings and events of the room kernel/. Part of played_machine.h. */
#ifndef PLAYED_KERNEL_H
#define PLAYED_KERNEL_H

#include "played_state.h"

static inline void tell(struct pybpf_process_event event, const struct machine_process *process)
{
	struct kernel *k = &machine.kernel;

	event.tgid = (uint32_t)process->pid;
	event.inner_tgid = (uint32_t)process->pid;
	event.proc_id = process->entry.proc_id;
	event.state = process->entry.state;
	event.mm = process->entry.mm;
	event.start = process->entry.start;
	event.layout = process->entry.runtimes[0].layout;
	event.wanted = !process->kept_out;
	snprintf(event.comm, sizeof(event.comm), "%.15s", process->program->name);
	if (k->events_tail - k->events_head >= k->events_room)
		*(event.wanted ? &k->losses.events : &k->losses.others) += 1;
	else
		k->events[k->events_tail++ % RING_ROOM] = event;
}

static inline bool worth_telling(const struct pybpf_proc *entry)
{
	return !machine.kernel.all || entry->state == PYBPF_PROC_UNDECIDED || entry->state == PYBPF_PROC_READY;
}

static inline struct pybpf_file_key key_of(const struct program *program)
{
	return (struct pybpf_file_key){.inode = program->inode, .ctime = 1, .dev = 1};
}

int kernel_open_watch(struct kernel *k, const struct kernel_watcher *watcher)
{
	k->watcher = *watcher;
	return 0;
}

int kernel_attach_watch(struct kernel *k)
{
	k->attached = true;
	return 0;
}

int kernel_find_processes(struct kernel *k)
{
	for (size_t i = 0; i < NR_PIDS; i++) {
		struct machine_process *process = &machine.processes[i];
		struct pybpf_process_event event = {.what = PYBPF_PROCESS_FOUND};
		size_t tail = k->events_tail;

		if (!process->alive || (process->in_kernel ? process->entry.state != PYBPF_PROC_CLAIMED : !k->all))
			continue;
		process->entry = (struct pybpf_proc){
			.mm = process->mm,
			.start = process->start,
			.proc_id = ++k->last_id,
			.state = PYBPF_PROC_UNDECIDED,
			.reported = true,
		};
		process->in_kernel = true;
		event.file = key_of(process->program);
		tell(event, process);
		/* The iterator has no ring. */
		k->events_tail = tail;
		k->watcher.on_process(&k->events[tail % RING_ROOM], k->watcher.arg);
	}
	return 0;
}

int kernel_consume_processes(struct kernel *k)
{
	while (k->events_head != k->events_tail) {
		struct pybpf_process_event event = k->events[k->events_head++ % RING_ROOM];

		k->watcher.on_process(&event, k->watcher.arg);
	}
	return 0;
}

void kernel_consume_mappings(struct kernel *k)
{
	while (k->mappings_head != k->mappings_tail) {
		struct kernel_mapping mapping = k->mappings[k->mappings_head++ % RING_ROOM];

		k->watcher.on_mapping(&mapping, k->watcher.arg);
	}
}

void kernel_get_watch_fds(const struct kernel *k, int fds[KERNEL_WATCH_FDS])
{
	(void)k;
	memset(fds, 0, KERNEL_WATCH_FDS * sizeof(*fds));
}

void kernel_read_losses(const struct kernel *k, struct kernel_losses *out)
{
	*out = k->losses;
}

int kernel_claim_process(struct kernel *k, pid_t pid)
{
	struct machine_process *process = process_of(pid);

	if (process->in_kernel)
		return -EEXIST;
	if (!k->procs_room)
		return -E2BIG;
	k->procs_room--;
	process->in_kernel = true;
	process->entry = (struct pybpf_proc){.state = PYBPF_PROC_CLAIMED};
	return 0;
}

int kernel_get_process(const struct kernel *k, pid_t pid, struct pybpf_proc *entry)
{
	const struct machine_process *process = process_of(pid);

	(void)k;
	if (!process->in_kernel)
		return -ENOENT;
	*entry = process->entry;
	return 0;
}

bool kernel_owns_proc_id(const struct kernel *k, uint64_t proc_id)
{
	(void)k;
	return !machine.life_of_another_run || proc_id != machine.life_of_another_run;
}

int kernel_visit_processes(const struct kernel *k, int (*visit)(pid_t pid, const struct pybpf_proc *entry, void *arg),
			   void *arg)
{
	int err = 0;

	(void)k;
	for (size_t i = 0; i < NR_PIDS && !err; i++) {
		const struct machine_process *process = &machine.processes[i];

		if (process->in_kernel)
			err = visit(process->pid, &process->entry, arg);
	}
	return err;
}

int kernel_put_process(struct kernel *k, pid_t pid, const struct pybpf_proc *entry)
{
	struct machine_process *process = process_of(pid);
	void (*happens)(void) = k->before_put;

	k->before_put = NULL;
	if (happens)
		happens();
	if (!process->in_kernel)
		return -ENOENT;
	process->entry = *entry;
	return 0;
}

static inline struct pybpf_file *file_of(struct kernel *k, const struct pybpf_file_key *key, bool add)
{
	for (size_t i = 0; i < sizeof(k->files) / sizeof(*k->files); i++) {
		if (add && !k->files[i].used) {
			k->files[i].used = true;
			k->files[i].key = *key;
		}
		if (k->files[i].used && !memcmp(&k->files[i].key, key, sizeof(*key)))
			return &k->files[i].file;
	}
	return NULL;
}

int kernel_put_file(struct kernel *k, const struct pybpf_file_key *key, const struct pybpf_file *file)
{
	*file_of(k, key, true) = *file;
	return 0;
}

int kernel_get_file(const struct kernel *k, const struct pybpf_file_key *key, struct pybpf_file *file)
{
	const struct pybpf_file *known = file_of((struct kernel *)k, key, false);

	if (!known || !known->kind)
		return -ENOENT;
	*file = *known;
	return 0;
}

void kernel_delete_file(struct kernel *k, const struct pybpf_file_key *key)
{
	struct pybpf_file *known = file_of(k, key, false);

	if (known)
		known->kind = 0;
}

int kernel_put_layout(struct kernel *k, const struct pybpf_layout *layout)
{
	for (uint32_t i = 0; i < k->nr_layouts; i++) {
		if (!memcmp(&k->layouts[i], layout, sizeof(*layout)))
			return (int)i;
	}
	if (k->nr_layouts == k->layouts_room)
		return -E2BIG;
	k->layouts[k->nr_layouts] = *layout;
	return (int)k->nr_layouts++;
}

const struct pybpf_layout *kernel_get_layout(const struct kernel *k, uint32_t index)
{
	assert_true(index < k->nr_layouts);
	return &k->layouts[index];
}

#endif
