// SPDX-License-Identifier: Apache-2.0
/* What the programs of the machine map executable, from perf's own records: that is how a library is seen to be loaded.
 */
#ifndef KERNEL_MAPPINGS_H
#define KERNEL_MAPPINGS_H

#include <stdint.h>

#include "processes/files.h"

struct session_mappings;

/*
 * Begins to record; events_map is the descriptor of a BPF_MAP_TYPE_PERF_EVENT_ARRAY for libbpf's use. visit is called
 * by session_mappings_consume for each mapping. Returns NULL with errno set.
 */
struct session_mappings *
session_mappings_new(int events_map, void (*visit)(const struct session_mapping *mapping, void *arg), void *arg);
void session_mappings_free(struct session_mappings *m);
/* Polls readable when a buffer is half full. */
int session_mappings_fd(const struct session_mappings *m);
/* Returns 0 or negative errno. */
int session_mappings_consume(struct session_mappings *m);
/* How many records found no room. */
uint64_t session_mappings_lost(const struct session_mappings *m);

#endif
