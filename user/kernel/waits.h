// SPDX-License-Identifier: Apache-2.0
/* The time of threads, as the kernel side keeps it: which threads there are, and what they waited for. */
#ifndef KERNEL_WAITS_H
#define KERNEL_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf_wait.h"

struct kernel;

/* Returns whether time is kept by state, as kernel_options.states asks for: on older kernels it is not. */
bool kernel_has_states(const struct kernel *k);

/*
 * Returns whether there are two sets of the time of waits, which kernel_change_sets() switches with those of samples:
 * in a rolling run.
 */
bool kernel_has_wait_sets(const struct kernel *k);

/* Needs kernel_options.waits or kernel_has_states(), as all of these. Returns 0, or negative errno after reporting what
 * failed. */
int kernel_attach_waits(struct kernel *k);
/*
 * on: time begins with the next switch of each thread, and with kernel_find_threads() for those that sleep; else no
 * time is added to what began after this call: the run ends now. May be called without waits.
 */
void kernel_start_waits(struct kernel *k, bool on);
/* No program runs any more when it returns. May be called twice. */
void kernel_detach_waits(struct kernel *k);

/*
 * Begins the time of the threads that exist already, and calls visit for each thread of a process in map procs that may
 * be a Python. Returns 0, or negative errno after reporting what failed.
 */
int kernel_find_threads(struct kernel *k, void (*visit)(const struct pybpf_thread_found *found, void *arg), void *arg);

/*
 * Notes the only descriptor that a thread polls, which has slept since it was found. pid: in the initial PID namespace.
 * Returns 0, or -E2BIG when there is no room for more.
 */
int kernel_note_polled(struct kernel *k, uint32_t pid, uint32_t fd);

/* Makes the noted descriptors what these threads wait for, once in a run. */
void kernel_see_polled(struct kernel *k);

/* Fills *thread. pid: in the initial PID namespace. Returns 0 or negative errno. */
int kernel_get_thread(const struct kernel *k, uint32_t pid, struct pybpf_thread *thread);

/* Return 0, the negative errno of a visit, or that of a failed read. */
int kernel_visit_threads(const struct kernel *k, int (*visit)(const struct pybpf_thread *thread, void *arg), void *arg);
typedef int kernel_wait_visitor(const struct pybpf_wait_key *key, const struct pybpf_wait_time *time, void *arg);
int kernel_visit_wait_times(const struct kernel *k, kernel_wait_visitor *visit, void *arg);
/*
 * After kernel_change_sets(), with kernel_has_wait_sets(): visits and removes the times of the unused set. Returns as
 * kernel_visit_wait_times() does; on an error the times not yet visited are lost.
 */
int kernel_take_wait_times(struct kernel *k, kernel_wait_visitor *visit, void *arg);
void kernel_delete_wait_time(struct kernel *k, const struct pybpf_wait_key *key);
/* Makes room for the names of other waits: this one's is sent anew when it is next met. */
void kernel_forget_wait(struct kernel *k, uint64_t wait_id);

/* Adds up the waits for the GIL of all threads, of a run with kernel_options.gil. Returns 0 or negative errno. */
int kernel_get_gil_waits(const struct kernel *k, struct pybpf_gil_waits *waits);

/* Most distinct peers, files and processes that are waited for; those of further waits are not named. */
#define KERNEL_WAITS_MAX 4096

/* Returns the number of waits whose cause was not recorded, as the map was full. */
uint64_t kernel_get_unnamed_waits(const struct kernel *k);

/* Time for which there was no room, in ns, and threads for which there was none. */
void kernel_get_lost_time(const struct kernel *k, uint64_t *ns, uint64_t *threads);
/* The number and the time of intervals that were not sent, as there was no room. */
void kernel_get_lost_intervals(const struct kernel *k, struct pybpf_wait_time *lost);

#endif
