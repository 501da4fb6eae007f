// SPDX-License-Identifier: Apache-2.0
/* The timer: one perf event on each CPU, with the sampler attached. */
#ifndef KERNEL_SAMPLER_H
#define KERNEL_SAMPLER_H

#include <bpf/libbpf.h>
#include <stdbool.h>

enum session_perf_source {
	SESSION_PERF_AUTO = 0, /* cycles where there is a PMU, else the CPU clock */
	SESSION_PERF_CYCLES,
	SESSION_PERF_CPU_CLOCK,
};

struct session_perf {
	struct bpf_link **links;
	int *fds; /* of the events, which belong to the links */
	int count;
	unsigned freq;                   /* Hz */
	double shift;                    /* of the next rate against freq, a share of it; 0: any */
	enum session_perf_source source; /* what was opened */
};

/*
 * Opens an event of freq Hz on every online CPU and attaches program. source: what to sample on. Returns 0, or negative
 * errno after reporting what failed.
 */
int session_perf_attach(struct session_perf *perf, const struct bpf_program *program, unsigned freq,
			enum session_perf_source source);
/*
 * Gives each event another rate close to its own and begins its period anew. A program that does the same things in a
 * cycle of the timer's length (or of a multiple, or a part) would else be met in the same part of its cycle always.
 * Returns after how many seconds this is to be done again. Over such times the rate is freq.
 */
double session_perf_jitter(struct session_perf *perf);
/* Stops the timer; no program runs any more when it returns. May be called twice. */
void session_perf_detach(struct session_perf *perf);

/* Tries to open one event of that kind on the first CPU. Returns 0 or negative errno. */
int session_perf_probe(enum session_perf_source source);

#endif
