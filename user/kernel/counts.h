// SPDX-License-Identifier: Apache-2.0
/* Reads and deletes the sampler's counts and its records of known stacks, code objects and thread names. */
#ifndef KERNEL_COUNTS_H
#define KERNEL_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf.h"

struct kernel;

/* Sums the counters of all CPUs and contexts into total; ASKED is left 0. Returns 0 or negative errno. */
int kernel_read_counters(const struct kernel *k, uint64_t total[PYBPF_NR_COUNTERS]);

typedef int kernel_count_visitor(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg);

/* Calls visit for each count until it returns a negative errno. Returns 0, that errno, or that of a failed read. */
int kernel_visit_counts(const struct kernel *k, kernel_count_visitor *visit, void *arg);

/*
 * Switches samples to the other set of counts and, if forget, also to the other set of known stacks and code objects,
 * which is empty; the times of waits, too, with kernel_has_wait_sets(). Needs kernel_options.rolling. Sets *changed_ns
 * to the moment, in CLOCK_MONOTONIC. Returns 0 when no program uses the old sets any more, or negative errno.
 */
int kernel_change_sets(struct kernel *k, bool forget, uint64_t *changed_ns);
/* Returns the sets that samples use, in the encoding of struct pybpf_event. */
uint32_t kernel_get_sets(const struct kernel *k);
/*
 * After kernel_change_sets: visits and removes the counts of the unused set. Returns as kernel_visit_counts does; on an
 * error the counts not yet visited are lost.
 */
int kernel_take_counts(struct kernel *k, kernel_count_visitor *visit, void *arg);
/* After kernel_change_sets with forget: empties the unused sets of known objects. Returns 0 or negative errno. */
int kernel_forget_known(struct kernel *k);
void kernel_delete_count(struct kernel *k, const struct pybpf_count_key *key);

/* Deletes a known stack or code object: the kernel sends it anew when it next meets it. */
void kernel_delete_stack(struct kernel *k, uint64_t stack_id);
void kernel_delete_code(struct kernel *k, const struct pybpf_code_key *key);

/* Fills *name with the name that the thread had when it was sampled; "" for an unknown thread. */
void kernel_get_thread_name(const struct kernel *k, const struct pybpf_thread_key *key, struct pybpf_thread_name *name);
void kernel_put_thread_name(struct kernel *k, const struct pybpf_thread_key *key, const struct pybpf_thread_name *name);
void kernel_delete_thread_name(struct kernel *k, const struct pybpf_thread_key *key);

#endif
