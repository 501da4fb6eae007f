// SPDX-License-Identifier: Apache-2.0
/* The machine's CPUs, which come and go during a run. */
#ifndef KERNEL_CPUS_H
#define KERNEL_CPUS_H

struct kernel;

/*
 * Returns one more than the highest number of a CPU that the machine has, online or not; or negative errno. It is often
 * less than the number of possible CPUs, which counts those that could be added.
 */
int kernel_present_cpus(void);

/*
 * Opens what is open on each CPU on those that came online since the last call, too, and once more where a CPU was
 * offline meanwhile, a second or two later, or ten if that took less than a second. To be called several times a second
 * while samples are taken; now: CLOCK_MONOTONIC seconds.
 */
void kernel_follow_cpus(struct kernel *k, double now);

#endif
