// SPDX-License-Identifier: Apache-2.0
/* Access to the maps of processes, files and layouts. */
#include "kernel/procs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/internal.h"

int kernel_claim_process(struct kernel *k, pid_t pid)
{
	const struct pybpf_proc claimed = {.state = PYBPF_PROC_CLAIMED};

	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.procs), &pid, &claimed, BPF_NOEXIST);
}

int kernel_get_process(const struct kernel *k, pid_t pid, struct pybpf_proc *entry)
{
	return bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.procs), &pid, entry);
}

int kernel_visit_processes(const struct kernel *k, int (*visit)(pid_t pid, const struct pybpf_proc *entry, void *arg),
			   void *arg)
{
	int fd = bpf_map__fd(k->skel->maps.procs), err = 0;
	uint32_t pid, before;
	bool first = true;

	/* A key that is deleted meanwhile starts the kernel's list anew: its length bounds the loop. */
	for (uint32_t n = 0; n < k->options.max_processes && !err; n++) {
		struct pybpf_proc entry;

		if (bpf_map_get_next_key(fd, first ? NULL : &before, &pid))
			break;
		before = pid;
		first = false;
		if (!bpf_map_lookup_elem(fd, &pid, &entry))
			err = visit((pid_t)pid, &entry, arg);
	}
	return err;
}

int kernel_put_process(struct kernel *k, pid_t pid, const struct pybpf_proc *entry)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.procs), &pid, entry, BPF_EXIST);
}

/*
 * The numbers of programs are counted by the kernel, by CPU and program (bpf/process.bpf.h). Each run begins at another
 * count, so that no two runs of this process have a number in common: a helper's answers tell by it whose they are.
 */
#define RUN_SHIFT 40

int kernel_begin_proc_ids(struct kernel *k)
{
	const int cpus = libbpf_num_possible_cpus(), fd = bpf_map__fd(k->skel->maps.proc_ids);
	uint64_t *counts = cpus > 0 ? calloc((size_t)cpus, sizeof(*counts)) : NULL;
	int err = counts ? 0 : -ENOMEM;

	for (int i = 0; i < cpus && counts; i++)
		counts[i] = (uint64_t)k->options.run << RUN_SHIFT;
	for (uint32_t row = 0; row < bpf_map__max_entries(k->skel->maps.proc_ids) && !err; row++)
		err = bpf_map_update_elem(fd, &row, counts, BPF_ANY);
	k->skel->bss->found_ids = (uint64_t)k->options.run << RUN_SHIFT;
	free(counts);
	return err;
}

bool kernel_owns_proc_id(const struct kernel *k, uint64_t proc_id)
{
	const uint64_t places = bpf_map__max_entries(k->skel->maps.proc_ids) * (uint64_t)k->skel->rodata->cfg_cpus + 1;

	return proc_id / places >> RUN_SHIFT == k->options.run;
}

int kernel_put_file(struct kernel *k, const struct pybpf_file_key *key, const struct pybpf_file *file)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.files), key, file, BPF_ANY);
}

int kernel_get_file(const struct kernel *k, const struct pybpf_file_key *key, struct pybpf_file *file)
{
	return bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.files), key, file);
}

void kernel_delete_file(struct kernel *k, const struct pybpf_file_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.files), key);
}

int kernel_put_layout(struct kernel *k, const struct pybpf_layout *layout)
{
	int err;

	for (uint32_t i = 0; i < k->nr_layouts; i++) {
		if (memcmp(&k->layouts[i], layout, sizeof(*layout)) == 0)
			return (int)i;
	}
	if (k->nr_layouts == KERNEL_MAX_LAYOUTS)
		return -E2BIG;
	err = bpf_map__update_elem(k->skel->maps.layouts, &k->nr_layouts, sizeof(k->nr_layouts), layout,
				   sizeof(*layout), 0);
	if (err)
		return err;
	k->layouts[k->nr_layouts] = *layout;
	return (int)k->nr_layouts++;
}

const struct pybpf_layout *kernel_get_layout(const struct kernel *k, uint32_t index)
{
	return &k->layouts[index];
}
