// SPDX-License-Identifier: Apache-2.0
/* What the sampler sends: stacks and code objects that are seen for the first time, and the times of samples. */
#ifndef KERNEL_EVENTS_H
#define KERNEL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel;

/*
 * Opens the ring buffer. take is called by kernel_consume_events for each record (struct pybpf_event); it returns 0, or
 * -EAGAIN to be given the next ones by another call. Returns 0, or negative errno after reporting what failed.
 */
int kernel_open_events(struct kernel *k, int (*take)(void *arg, void *record, size_t size), void *arg);
/* Polls readable when much has come. */
int kernel_get_events_fd(const struct kernel *k);
/* Returns 0, -EAGAIN where take has said so, or another negative errno. */
int kernel_consume_events(struct kernel *k);

/* From now on stacks that are not known yet are lost, and counted as PYBPF_COUNT_MEMORY_FULL; or are taken again. */
void kernel_refuse_new_stacks(struct kernel *k, bool refuse);

/* CLOCK_MONOTONIC ns of the first sample; 0: there was none. */
uint64_t kernel_get_first_sample_ns(const struct kernel *k);

#endif
