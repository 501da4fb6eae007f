// SPDX-License-Identifier: Apache-2.0
/* Callbacks of event loops, as the kernel side follows them, and those that took too long. */
#ifndef KERNEL_CALLBACKS_H
#define KERNEL_CALLBACKS_H

#include <stdint.h>

#include "pybpf_wait.h"

struct kernel;

/*
 * Call visit for the callback in which each thread was last; and for those that took too long, added up by key. Need
 * kernel_options.loop_block_ns, as all of these. Return 0, the negative errno of a visit, or that of a failed read.
 */
int kernel_visit_callbacks(const struct kernel *k,
			   int (*visit)(uint32_t pid, const struct pybpf_callback *callback, void *arg), void *arg);
int kernel_visit_blocks(const struct kernel *k,
			int (*visit)(const struct pybpf_block_key *key, const struct pybpf_wait_time *time, void *arg),
			void *arg);
/* pid: as the visit had it. */
void kernel_delete_callback(struct kernel *k, uint32_t pid);
void kernel_delete_block(struct kernel *k, const struct pybpf_block_key *key);

/* Returns how many threads and callbacks found no room. */
uint64_t kernel_count_lost_callbacks(const struct kernel *k);

#endif
