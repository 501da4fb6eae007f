// SPDX-License-Identifier: Apache-2.0
/* Declarations that only the files of the kernel room share. */
#ifndef KERNEL_INTERNAL_H
#define KERNEL_INTERNAL_H

#include "child/child.h"
#include "kernel/events.h"
#include "kernel/features.h"
#include "kernel/jitter.h"
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
	struct bpf_link *link;            /* NULL while the CPU is offline, and if the opener has attached it */
	int fd;                           /* the perf event's descriptor, owned by the link if there is one; else -1 */
	int link_fd;                      /* of the link that the opener made; else -1 */
	const struct kernel_event *event; /* NULL: a tracepoint or function, of no CPU */
	int cpu;
	uint64_t enabled_ns; /* the time for which the event was enabled, when it was asked last */
};

struct kernel_sampler {
	struct kernel_event timer;
	const struct kernel_event *events; /* the timer, or those of the options */
	size_t nr_events;
	struct kernel_attached *attached;
	int count;
	unsigned freq;    /* Hz */
	unsigned divisor; /* of it */
	struct kernel_jitter jitter;
};

/* More than kernels of distributions can have (NR_CPUS, 8192). */
#define KERNEL_CPUS_MAX 16384

struct kernel_cpu_set {
	uint64_t bits[KERNEL_CPUS_MAX / 64];
};

/* What was known of the machine's CPUs when they were looked at last. */
struct kernel_cpus {
	struct kernel_cpu_set online;
	uint64_t slept_ns;             /* how long the machine has slept since it started */
	double next_look, next_checks; /* CLOCK_MONOTONIC seconds */
	int checks;                    /* of all events, in this row */
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
	struct kernel_cpus cpus;
	struct child opener;
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

/*
 * Returns whether the CPU of the sampler's attachment of that number is offline, or has been since the last call
 * (compare kernel_mappings_lacks()). The attachment has been removed then.
 */
bool kernel_sampler_lacks(struct kernel *k, int i);
/*
 * Opens the event of such an attachment and attaches its program. Returns 0 with the descriptors of the event and of
 * the link, which is -1 where the event holds its program itself; else negative errno, -ENODEV or -ENXIO: the CPU is
 * offline.
 */
int kernel_sampler_open(struct kernel *k, int i, int fds[2]);
/* Takes over such descriptors. */
void kernel_sampler_add(struct kernel *k, int i, const int fds[2]);

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

/* Returns the program that takes the samples of an event; NULL: of the timer. */
struct bpf_program *kernel_get_program(const struct kernel *k, const struct kernel_event *event);
/* Returns the program that takes samples, of the first event. */
struct bpf_program *kernel_get_sampler_program(const struct kernel *k);

#endif
