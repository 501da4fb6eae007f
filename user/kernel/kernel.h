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
#include "pybpf_native.h"

struct kernel;

/* Users (by UID) or cgroups (by the inode of their directory). */
struct kernel_filter {
	const uint64_t *included, *excluded;
	size_t nr_included, nr_excluded;
};

struct kernel_options {
	bool all;               /* every process that the filters let pass; else the claimed ones */
	bool follow;            /* and their children */
	bool hold;              /* user space decides on each Python before it is sampled */
	bool threads;           /* tell threads apart */
	bool times;             /* send the time of each sample */
	bool kernel_stacks;     /* samples have their stack in the kernel */
	bool native;            /* stacks have native frames, see kernel/native.h */
	uint32_t native_chunks; /* most chunks of their pages */
	enum pybpf_native_exact native_exact;
	bool waits;             /* keep the time of threads, see kernel/waits.h */
	bool states;            /* keep the time of threads by state only, if the kernel can: see kernel_has_states() */
	bool wait_detail;       /* with waits: say what each is for */
	uint64_t min_block_ns;  /* with waits: shorter ones are only added up by thread and state */
	bool gil_waits;         /* with waits: which threads hold the GIL, and which sleeps are one wait for it */
	bool wakers;            /* with waits: who ended each */
	bool tasks;             /* say which asyncio task ran */
	uint64_t loop_block_ns; /* with tasks: keep callbacks of event loops that take this long; 0: none */
	bool rolling;           /* counts are taken while samples are: there are two sets, see kernel_change_sets */
	bool gil;               /* only samples of threads that hold the GIL, or are attached */
	bool exception;         /* only samples of threads that raise or handle an exception */
	bool gc;                /* tell samples within a garbage collection apart */
	bool opcodes;           /* read the instruction that the last frame executes */
	bool python_only; /* samples without Python frames are counted by cause, and have no entry in map counts */
	struct kernel_filter users, cgroups;
	int cgroup_subsystem; /* kernel's number of the v1 hierarchy that the cgroups are in; -1: v2 */
	uint32_t max_processes, max_stacks;
	uint64_t max_memory;               /* bytes that user space and the maps may take */
	enum kernel_source source;         /* of the timer */
	const struct kernel_event *events; /* sampled in place of the timer */
	size_t nr_events;
	bool held;                     /* with a memory event: send where memory is touched, given back and moved */
	const char *disabled_features; /* names of features not to be used although this kernel has them, or NULL */
	uint32_t run;                  /* of the runs beside each other in this process: from 0 on, each its own */
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
/* Returns how much of it is mapped into this process, and counts as its resident memory: libbpf maps rings twice. */
uint64_t kernel_get_mapped_bytes(const struct kernel *k);

/* Lets the cgroup's processes pass, too. Returns 0, or negative errno: -E2BIG when there are too many. */
int kernel_include_cgroup(struct kernel *k, uint64_t id);
/* Returns how many cgroups have been made during the run; only with options.cgroups. */
uint64_t kernel_count_made_cgroups(const struct kernel *k);

/* From now on the kernel measures the time of its programs. */
void kernel_enable_stats(struct kernel *k);
/* Returns the total run time of the sampler in ns; negative if it is not measured. */
int64_t kernel_get_sampler_ns(const struct kernel *k);

#endif
