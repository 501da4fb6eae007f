// SPDX-License-Identifier: Apache-2.0
/* Declarations that only the files of the kernel room share. */
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
struct bpf_map_batch_opts;
struct bpf_program;
struct ring_buffer;

/* Distinct builds of Python in one run. */
#define KERNEL_MAX_LAYOUTS 256

/* Tracepoints that follow processes: fork, exec and exit. */
#define KERNEL_NR_HOOKS 3
/* Tracepoints that keep the time of threads. */
#define KERNEL_NR_WAIT_HOOKS 6

/* One attachment of the sampler: a source on one CPU, or a tracepoint. */
struct kernel_attached {
	struct bpf_link *link;
	int fd;        /* the event's descriptor if its rate is varied, owned by the link; else -1 */
	bool is_clock; /* its period is made of nanoseconds */
};

struct kernel_sampler {
	struct kernel_event timer;
	const struct kernel_event *events; /* the timer, or those of the options */
	size_t nr_events;
	struct kernel_attached *attached;
	int count;
	unsigned freq;    /* Hz */
	unsigned divisor; /* of it */
	double shift;     /* offset of the next rate from freq, as a share of freq; 0: to be drawn at random */
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
	struct bpf_link *wait_hooks[KERNEL_NR_WAIT_HOOKS];
	int polled_fd;                /* iterator that describes polled descriptors; 0: there is none, or it was used */
	struct bpf_link *cgroup_hook; /* NULL where no cgroups are wanted */
	struct kernel_sampler sampler;
	int sampled_cpus;
	uint32_t sets; /* the sets that samples use, in the encoding of struct pybpf_event */
	int stats_fd;  /* -1: the programs' time is not measured */
	int *chunks;   /* descriptors of the chunks of native frames' pages */
	uint32_t nr_chunks;
	struct pybpf_layout layouts[KERNEL_MAX_LAYOUTS];
	uint32_t nr_layouts;
};

/* The maps that exist once per set, see PYBPF_SETS. */
struct kernel_set {
	struct bpf_map *counts, *stacks, *codes, *wait_times;
};

struct kernel_set kernel_get_set(const struct kernel *k, int set);

typedef int kernel_batch_call(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
			      const struct bpf_map_batch_opts *opts);

/* Goes through a hash map by batches; visit may be NULL. Returns 0, the visit's errno, or that of a failed read. */
int kernel_visit_map(const struct bpf_map *map, kernel_batch_call *call,
		     int (*visit)(const void *key, const void *value, void *arg), void *arg);

struct kernel_hook {
	struct bpf_program *program;
	const char *what; /* for messages: what it follows */
};

/* Attaches all of them, in order. Returns 0, or negative errno after reporting. The caller destroys the links. */
int kernel_attach_hooks(const struct kernel_hook *hooks, size_t count, struct bpf_link **links);

/*
 * Opens an iterator over the tasks, whose program runs once for each of them when the descriptor is read. what, for
 * messages: "threads". Returns a descriptor, or negative errno after reporting.
 */
int kernel_open_tasks(struct bpf_program *iterator, const char *what);

/*
 * Calls visit for each record, of `size` bytes, that the iterator's program writes. what, for messages: "threads".
 * Returns 0, or negative errno after reporting.
 */
int kernel_read_tasks(struct bpf_program *iterator, const char *what, size_t size,
		      void (*visit)(const void *record, void *arg), void *arg);

/* Requirements of the options' events on the programs. */
struct kernel_event_needs {
	bool tracepoints, functions, memory, cookies;
	uint32_t kind;              /* the kind of all samples, if no cookies are needed */
	uint64_t tracepoint_period; /* hits of tracepoints or functions per sample */
};

/* Returns whether their programs take bpf_loop: only the timer's can also be a chain. */
bool kernel_event_needs_loop(const struct kernel_event_needs *needs);

/* Fills *needs. Returns 0, or negative errno after reporting what this kernel lacks. */
int kernel_check_events(const struct kernel *k, struct kernel_event_needs *needs);

/* Returns the program that takes samples, of the first event. */
struct bpf_program *kernel_get_sampler_program(const struct kernel *k);

#endif
