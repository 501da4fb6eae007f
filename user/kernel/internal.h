// SPDX-License-Identifier: Apache-2.0
/* Shared by the files of this room alone. */
#ifndef KERNEL_INTERNAL_H
#define KERNEL_INTERNAL_H

#include "kernel/events.h"
#include "kernel/features.h"
#include "kernel/kernel.h"
#include "kernel/mappings.h"
#include "kernel/watch.h"
#include "pybpf.h"
#include "pybpf.skel.h"

struct bpf_link;
struct bpf_program;
struct ring_buffer;

/* Distinct builds of Python in one run. */
#define KERNEL_MAX_LAYOUTS 256

/* fork, exec and exit. */
#define KERNEL_NR_HOOKS 3

struct kernel_sampler {
	struct bpf_link **links;
	int *fds; /* of the events, which belong to the links */
	int count;
	unsigned freq; /* Hz */
	double shift;  /* of the next rate against freq, a share of it; 0: any */
};

struct kernel {
	struct kernel_options options;
	struct kernel_features features;
	struct pybpf_bpf *skel; /* NULL until kernel_load */
	/* kernel_open_events */
	struct ring_buffer *events;
	/* kernel_open_watch */
	struct kernel_watcher watcher;
	struct ring_buffer *process_events;
	struct kernel_mappings *mappings;
	struct bpf_link *hooks[KERNEL_NR_HOOKS];
	struct kernel_sampler sampler;
	int sampled_cpus;
	uint32_t sets; /* that samples use, as struct pybpf_event has them */
	int stats_fd;  /* -1: the programs' time is not measured */
	struct pybpf_layout layouts[KERNEL_MAX_LAYOUTS];
	uint32_t nr_layouts;
};

/* What of the maps is there more than once, see PYBPF_SETS. */
struct kernel_set {
	struct bpf_map *counts, *stacks, *codes;
};

struct kernel_set kernel_get_set(const struct kernel *k, int set);

/* The program that takes samples. */
struct bpf_program *kernel_get_sampler_program(const struct kernel *k);

#endif
