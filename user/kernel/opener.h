// SPDX-License-Identifier: Apache-2.0
/*
 * A process that opens perf events on CPUs that come online during a run: the one that samples has given up the rights
 * by then, which would let it read other processes' memory. It opens what was open when it was forked, and nothing
 * else.
 */
#ifndef KERNEL_OPENER_H
#define KERNEL_OPENER_H

#include <stdint.h>

struct kernel;

/*
 * Forks it, once the sampler is attached. To be called by a process with one thread. If that fails, for example for
 * lack of descriptors, it logs that CPUs which come online are not sampled.
 */
void kernel_start_opener(struct kernel *k);
void kernel_end_opener(struct kernel *k);

enum kernel_opener_what {
	KERNEL_OPEN_SAMPLER,  /* kernel_sampler_open() */
	KERNEL_OPEN_MAPPINGS, /* kernel_mappings_open() */
};

/*
 * Has it open an event: the attachment, or the CPU, of that number. Returns 0 with its descriptors, which are the
 * caller's, -1 in place of a missing one; or negative errno, as these functions return, or -EPIPE: the process is gone,
 * or did not answer in time and was given up.
 */
int kernel_ask_opener(struct kernel *k, enum kernel_opener_what what, int number, int fds[2]);

#endif
