// SPDX-License-Identifier: Apache-2.0
/* What the kernel is told of processes, of their programs' files, and of layouts: maps procs, files and layouts. */
#ifndef KERNEL_PROCS_H
#define KERNEL_PROCS_H

#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"

struct kernel;

/* The process is wanted. Returns 0, -EEXIST when the kernel knows it already, or another negative errno. */
int kernel_claim_process(struct kernel *k, pid_t pid);
/* Returns 0, -ENOENT when the kernel does not know the process, or another negative errno. */
int kernel_get_process(const struct kernel *k, pid_t pid, struct pybpf_proc *entry);
/* Replaces what the kernel knows. Returns as kernel_get_process does. */
int kernel_put_process(struct kernel *k, pid_t pid, const struct pybpf_proc *entry);

/* What each process of the program will be taken for at its exec. Returns 0 or negative errno. */
int kernel_put_file(struct kernel *k, const struct pybpf_file_key *key, const struct pybpf_file *file);
/* Returns 0, or -ENOENT when the kernel knows nothing of it (any more). */
int kernel_get_file(const struct kernel *k, const struct pybpf_file_key *key, struct pybpf_file *file);
void kernel_delete_file(struct kernel *k, const struct pybpf_file_key *key);

/* Puts the layout where the kernel finds it; an equal one is used again. Returns its index or negative errno. */
int kernel_put_layout(struct kernel *k, const struct pybpf_layout *layout);
const struct pybpf_layout *kernel_get_layout(const struct kernel *k, uint32_t index);

#endif
