// SPDX-License-Identifier: Apache-2.0
/* Executable mappings of all programs of the machine, from perf's records: they show that a library is loaded. */
#ifndef KERNEL_MAPPINGS_H
#define KERNEL_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/watch.h"

struct kernel_mappings;

/*
 * Begins to record; events_map is the descriptor of a BPF_MAP_TYPE_PERF_EVENT_ARRAY for libbpf's use. at_once: the
 * descriptor is readable with each record.
 * kernel_mappings_consume calls visit for each mapping. Returns NULL with errno set.
 */
struct kernel_mappings *kernel_mappings_new(int events_map, bool at_once,
					    void (*visit)(const struct kernel_mapping *mapping, void *arg), void *arg);
void kernel_mappings_free(struct kernel_mappings *m);
/* Returns a descriptor that polls readable when a buffer is half full, or at once. */
int kernel_mappings_fd(const struct kernel_mappings *m);
/* Calls visit for the waiting records. Returns 0 or negative errno. */
int kernel_mappings_consume(struct kernel_mappings *m);
/* Returns how many records were dropped because a buffer was full. */
uint64_t kernel_mappings_lost(const struct kernel_mappings *m);

#endif
