// SPDX-License-Identifier: Apache-2.0
/* Access to the maps that tell the kernel about processes, programs' files and layouts: procs, files and layouts. */
#ifndef KERNEL_PROCS_H
#define KERNEL_PROCS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"

struct kernel;

/* Tells the kernel that the process is wanted. Returns 0, -EEXIST when the kernel knows it already, or another negative
 * errno. */
int kernel_claim_process(struct kernel *k, pid_t pid);
/* Reads the kernel's entry. Returns 0, -ENOENT when the kernel does not know the process, or another negative errno. */
int kernel_get_process(const struct kernel *k, pid_t pid, struct pybpf_proc *entry);
/*
 * Calls visit with each of the kernel's entries. A process that starts or ends meanwhile may be left out. Returns 0, or
 * the first non-zero value of visit.
 */
int kernel_visit_processes(const struct kernel *k, int (*visit)(pid_t pid, const struct pybpf_proc *entry, void *arg),
			   void *arg);
/* Replaces the kernel's entry. Returns as kernel_get_process does. */
int kernel_put_process(struct kernel *k, pid_t pid, const struct pybpf_proc *entry);

/* Has the kernel count the numbers of programs (proc_id) from where those of no other run are. Returns 0 or negative
 * errno. */
int kernel_begin_proc_ids(struct kernel *k);
/* Returns whether a number is one that the kernel gives programs in this run. */
bool kernel_owns_proc_id(const struct kernel *k, uint64_t proc_id);

/* Tells the kernel what each process of the program is from its exec on. Returns 0 or negative errno. */
int kernel_put_file(struct kernel *k, const struct pybpf_file_key *key, const struct pybpf_file *file);
/* Reads what the kernel knows about the file. Returns 0, or -ENOENT when it has no entry (any more). */
int kernel_get_file(const struct kernel *k, const struct pybpf_file_key *key, struct pybpf_file *file);
void kernel_delete_file(struct kernel *k, const struct pybpf_file_key *key);

/* Puts the layout where the kernel finds it; an equal one is reused. Returns its index or negative errno. */
int kernel_put_layout(struct kernel *k, const struct pybpf_layout *layout);
const struct pybpf_layout *kernel_get_layout(const struct kernel *k, uint32_t index);

#endif
