// SPDX-License-Identifier: Apache-2.0
/* Executable mappings of all programs of the machine, from perf's records: they show that a library is loaded. */
#ifndef KERNEL_MAPPINGS_H
#define KERNEL_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/watch.h"

struct kernel_mappings;

/*
 * Begins to record on the CPUs that are online. at_once: the descriptor is readable with each record.
 * kernel_mappings_consume calls visit for each mapping. Returns NULL with errno set.
 */
struct kernel_mappings *kernel_mappings_new(bool at_once,
					    void (*visit)(const struct kernel_mapping *mapping, void *arg), void *arg);
void kernel_mappings_free(struct kernel_mappings *m);
/* Returns a descriptor that polls readable when a buffer is half full, or at once. */
int kernel_mappings_fd(const struct kernel_mappings *m);
/* Calls visit for the waiting records. */
void kernel_mappings_consume(struct kernel_mappings *m);

/*
 * Returns whether there are no records of a CPU, from 0 on, as it is offline, or has been since the last call: the
 * kernel takes the events of such a CPU away for good (perf_event_exit_cpu()). That shows in the time for which its
 * event was enabled, so it takes two calls, some time apart; what was mapped there meanwhile counts as a lost record.
 */
bool kernel_mappings_lacks(struct kernel_mappings *m, int cpu);
/* Opens the event of a CPU. Returns its descriptor, or negative errno; -ENODEV or -ENXIO: the CPU is offline. */
int kernel_mappings_open(struct kernel_mappings *m, int cpu);
/* Adds the buffer of an event that was opened, whose descriptor it takes over, for a CPU that lacks one. Returns 0 or
 * negative errno. */
int kernel_mappings_add(struct kernel_mappings *m, int cpu, int fd);

/* Returns how many records were dropped because a buffer was full, or there was none. */
uint64_t kernel_mappings_lost(const struct kernel_mappings *m);

#endif
