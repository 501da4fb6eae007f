// SPDX-License-Identifier: Apache-2.0
/* The maps of native frames: tables of files, and what processes have mapped. Needs kernel_options.native. */
#ifndef KERNEL_NATIVE_H
#define KERNEL_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "pybpf_native.h"

struct kernel;

/* Most files with a table, and most processes with a list, at one time. */
#define KERNEL_NATIVE_FILES 16384

/*
 * Makes the map of a table of so many rows, which no program sees yet. Returns its descriptor, for the caller to close,
 * or negative errno.
 */
int kernel_make_native_table(size_t rows);
/* Puts rows into it; first: a multiple of PYBPF_NATIVE_PAGE_ROWS, as is count but for the last rows. */
int kernel_fill_native_table(int table, size_t first, const struct pybpf_native_row *rows, size_t count);
/* Hands the table to the programs, in place of an earlier one. Returns 0 or negative errno. */
int kernel_put_native_table(struct kernel *k, uint32_t file, int table);
void kernel_delete_native_table(struct kernel *k, uint32_t file);
/* Returns the pages of a table with so many rows, and the bytes that they take. */
uint32_t kernel_count_native_pages(size_t rows);
#define KERNEL_NATIVE_PAGE_BYTES sizeof(struct pybpf_native_page)

/* Hands a process's list of mappings, in order of their addresses, to the programs. Returns 0 or negative errno. */
int kernel_put_native_mappings(struct kernel *k, uint64_t proc_id, uint64_t generation,
			       const struct pybpf_native_mapping *mappings, size_t count);
void kernel_delete_native_mappings(struct kernel *k, uint64_t proc_id);

#endif
