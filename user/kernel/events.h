// SPDX-License-Identifier: Apache-2.0
/* Records that the sampler sends: stacks and code objects seen for the first time, and the times of samples. */
#ifndef KERNEL_EVENTS_H
#define KERNEL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel;

/*
 * Opens the ring buffer. kernel_consume_events calls take for each record (struct pybpf_event); take returns 0, or
 * -EAGAIN to leave the remaining records to another call. Returns 0, or negative errno after reporting what failed.
 */
int kernel_open_events(struct kernel *k, int (*take)(void *arg, void *record, size_t size), void *arg);
/* Returns a descriptor that polls readable when many records are waiting. */
int kernel_get_events_fd(const struct kernel *k);
/* Calls take for the waiting records. Returns 0, -EAGAIN if take returned it, or another negative errno. */
int kernel_consume_events(struct kernel *k);

/* refuse: drop stacks not known yet, and count them as PYBPF_COUNT_MEMORY_FULL; else accept them once more. */
void kernel_refuse_new_stacks(struct kernel *k, bool refuse);

/* refuse: send no times of samples, and count the samples as PYBPF_COUNT_UNTIMED, too; else send them once more. */
void kernel_refuse_times(struct kernel *k, bool refuse);

/* Returns the CLOCK_MONOTONIC time of the first sample, in ns; 0 if no sample was taken. */
uint64_t kernel_get_first_sample_ns(const struct kernel *k);
/* Returns the bytes of memory that the sampled processes gave back, with a memory event (kernel/event.h). */
uint64_t kernel_get_given_back(const struct kernel *k);
/* Returns the number of records of memory that found no room in the ring buffer, with options.held. */
uint64_t kernel_get_memory_unsent(const struct kernel *k);

#endif
