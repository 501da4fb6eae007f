// SPDX-License-Identifier: Apache-2.0
/* What the sampler has counted, and what it remembers of stacks, code objects and threads. */
#ifndef KERNEL_COUNTS_H
#define KERNEL_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf.h"

struct kernel;

/* Adds the counters of all CPUs and contexts up; ASKED is left 0. Returns 0 or negative errno. */
int kernel_read_counters(const struct kernel *k, uint64_t total[PYBPF_NR_COUNTERS]);

typedef int kernel_count_visitor(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg);

/* Calls visit for each count until it returns a negative errno. Returns 0, or that, or the failure to read. */
int kernel_visit_counts(const struct kernel *k, kernel_count_visitor *visit, void *arg);

/*
 * From now on samples are counted in the other set of counts, and forget: with the other set of known stacks and code
 * objects, which is empty. Needs kernel_options.rolling. Returns 0 when no sample uses the old sets any more, or
 * negative errno.
 */
int kernel_change_sets(struct kernel *k, bool forget);
/* The sets that samples use, as struct pybpf_event has them. */
uint32_t kernel_get_sets(const struct kernel *k);
/*
 * After kernel_change_sets: takes the counts out of the set that is not used. Returns as kernel_visit_counts does; what
 * was not visited then is lost.
 */
int kernel_take_counts(struct kernel *k, kernel_count_visitor *visit, void *arg);
/* After kernel_change_sets with forget: empties the sets of what was known. Returns 0 or negative errno. */
int kernel_forget_known(struct kernel *k);
void kernel_delete_count(struct kernel *k, const struct pybpf_count_key *key);

/* The kernel sends the stack, the code object, anew when it meets it again. */
void kernel_delete_stack(struct kernel *k, uint64_t stack_id);
void kernel_delete_code(struct kernel *k, const struct pybpf_code_key *key);

/* The name that the thread had when it was sampled; "" for one that is not known. */
void kernel_get_thread_name(const struct kernel *k, const struct pybpf_thread_key *key, struct pybpf_thread_name *name);
void kernel_delete_thread_name(struct kernel *k, const struct pybpf_thread_key *key);

#endif
