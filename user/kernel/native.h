// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel side's memory of native frames: pages, in which tables of files and lists of mappings are, and where the
 * list of each process is. Needs kernel_options.native.
 */
#ifndef KERNEL_NATIVE_H
#define KERNEL_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "pybpf_native.h"

struct kernel;

#define KERNEL_NATIVE_CHUNK_BYTES (PYBPF_NATIVE_CHUNK_PAGES * sizeof(struct pybpf_native_page))

/*
 * Makes one more chunk of pages; waits for the programs that run, some 10 ms. Returns 0, -E2BIG when there are as many
 * as options.native_chunks says, or another negative errno.
 */
int kernel_add_native_chunk(struct kernel *k);
/* Returns the number of chunks. */
uint32_t kernel_count_native_chunks(const struct kernel *k);

/* Writes, or reads, one page by its number. Returns 0 or negative errno. */
int kernel_write_native_page(struct kernel *k, uint32_t page, const struct pybpf_native_page *content);
int kernel_read_native_page(const struct kernel *k, uint32_t page, struct pybpf_native_page *out);

/* Tells where a process's list is, in place of an earlier one. Returns 0 or negative errno. */
int kernel_put_native_list(struct kernel *k, uint64_t proc_id, const struct pybpf_native_list *list);
void kernel_delete_native_list(struct kernel *k, uint64_t proc_id);

#endif
