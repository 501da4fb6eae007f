// SPDX-License-Identifier: Apache-2.0
/* Sources of samples: the timer, or other events, on each CPU. */
#ifndef KERNEL_SAMPLER_H
#define KERNEL_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct kernel;

/* The unit that the timer counts. */
enum kernel_source {
	KERNEL_SOURCE_AUTO = 0, /* cycles where there is a PMU, else the CPU clock */
	KERNEL_SOURCE_CYCLES,
	KERNEL_SOURCE_CPU_CLOCK,
};

/* A source of samples: a perf event, a tracepoint, or a function of a file. See kernel/event.h for those with a name.
 */
struct kernel_event {
	const char *title;           /* what is counted, such as "page-faults"; NULL: not named */
	const char *category, *name; /* name of a tracepoint; NULL for a perf event */
	const char *path;            /* of the file of a function; else NULL */
	const char *symbol;          /* the function, for messages */
	uint64_t offset;             /* of the function in the file, in bytes */
	uint32_t type;               /* for a perf event: type and config of struct perf_event_attr */
	uint64_t config;
	/* Events per sample; 0: a perf event is sampled at the rate of kernel_attach_sampler, another one each time.
	 */
	uint64_t period;
	uint32_t kind;    /* enum pybpf_kind */
	const char *unit; /* of values; NULL: the number of events */
	bool memory;      /* a tracepoint that tells the size of a process's memory: values are its growth */
};

/*
 * Opens the timer, or the events of the options in its place, on every online CPU and attaches the sampler. freq: Hz,
 * of the timer and of events without a period. Returns 0, or negative errno after reporting what failed.
 */
int kernel_attach_sampler(struct kernel *k, unsigned freq);
/*
 * Gives each event that has a rate another one close to its own and begins its period anew. Otherwise a program
 * that repeats a cycle of the timer's length (or a multiple or a fraction of it) would always be sampled in the same
 * part of its cycle. Returns the number of seconds after which to call it next. On average over such intervals the rate
 * is freq, or what kernel_divide_rate() has made of it.
 */
double kernel_vary_rate(struct kernel *k);
/* Divides the rate by a number from 1 on: from now on it is freq / divisor. */
void kernel_divide_rate(struct kernel *k, unsigned divisor);
/* Stops the timer; no program runs any more when it returns. May be called twice. */
void kernel_detach_sampler(struct kernel *k);

/* Returns what the timer counts that the sampler was attached to. */
enum kernel_source kernel_get_source(const struct kernel *k);
/* Returns the number of CPUs on which it was attached. */
int kernel_get_sampled_cpus(const struct kernel *k);

/* Tries to open one event of that kind on the first CPU. Returns 0 or negative errno. */
int kernel_probe_source(enum kernel_source source);

#endif
