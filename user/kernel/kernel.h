// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel side of a run: its programs and its maps, behind typed calls. No code outside this room sees the skeleton
 * or calls a bpf_map_ function.
 *
 * Order of calls: kernel_new, kernel_load, kernel_open_events and kernel_open_watch to receive records and events,
 * kernel_attach_watch and kernel_attach_sampler to start it, kernel_free.
 */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/sampler.h"

struct kernel;

/* Users (by UID) or cgroups (by the inode of their directory). */
struct kernel_filter {
	const uint64_t *included, *excluded;
	size_t nr_included, nr_excluded;
};

struct kernel_options {
	bool all;     /* every process that the filters let pass; else the claimed ones */
	bool follow;  /* and their children */
	bool hold;    /* user space decides on each Python before it is sampled */
	bool threads; /* tell threads apart */
	bool times;   /* send the time of each sample */
	bool rolling; /* counts are taken while samples are: there are two sets, see kernel_change_sets */
	struct kernel_filter users, cgroups;
	int cgroup_subsystem; /* kernel's number of the v1 hierarchy that the cgroups are in; -1: v2 */
	uint32_t max_processes, max_stacks;
	enum kernel_source source;         /* of the timer */
	const struct kernel_event *events; /* sampled in place of the timer */
	size_t nr_events;
	const char *without; /* names of features not to be used although this kernel has them, or NULL */
};

/* Probes the kernel's features. Returns NULL after reporting what failed. */
struct kernel *kernel_new(const struct kernel_options *options);
/* Loads the programs and fills the maps that they read. Returns 0, or negative errno after reporting what failed. */
int kernel_load(struct kernel *k);
/* Detaches and unloads all programs. Accepts NULL. */
void kernel_free(struct kernel *k);

/* Returns whether the walk uses bpf_loop; else it is a chain of programs. */
bool kernel_uses_bpf_loop(const struct kernel *k);
/* Returns the memory of all maps as the kernel reports it, in bytes. */
uint64_t kernel_get_map_bytes(const struct kernel *k);

/* From now on the kernel measures the time of its programs. */
void kernel_enable_stats(struct kernel *k);
/* Returns the total run time of the sampler in ns; negative if it is not measured. */
int64_t kernel_get_sampler_ns(const struct kernel *k);

#endif
