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

/* A source on one CPU, or a tracepoint. */
struct kernel_attached {
	struct bpf_link *link;
	int fd;        /* of an event whose rate is varied, which belongs to the link; else -1 */
	bool is_clock; /* its period is made of nanoseconds */
};

struct kernel_sampler {
	struct kernel_event timer;
	const struct kernel_event *events; /* the timer, or those of the options */
	size_t nr_events;
	struct kernel_attached *attached;
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

/* What the options' events need of the programs. */
struct kernel_event_needs {
	bool tracepoints, cookies;
	uint32_t kind; /* of all samples, where it needs no cookies */
};

/* Returns 0, or negative errno after reporting what this kernel lacks. */
int kernel_check_events(const struct kernel *k, struct kernel_event_needs *needs);

/* The program that takes samples. */
struct bpf_program *kernel_get_sampler_program(const struct kernel *k);

#endif
