// SPDX-License-Identifier: Apache-2.0
/* Pages that the search for callers reads (bpf/pybpf_native.h): of files' tables, and of what processes map. */
#ifndef NATIVE_PAGE_H
#define NATIVE_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "pybpf_native.h"

/* Returns the pages of this many rows; of this many mappings and their head. */
uint32_t native_pages_of_rows(uint64_t rows);
uint32_t native_pages_of_mappings(size_t mappings);

/* Makes a page of a table, which has count rows: its first one is 0. */
void native_page_of_rows(const struct pybpf_native_row *rows, size_t count, uint32_t number,
			 struct pybpf_native_page *out);
/* Makes a page of a list, which has count mappings in order of addresses: its first one, 0, has the head. */
void native_page_of_mappings(const struct pybpf_native_mapping *mappings, size_t count, uint64_t generation,
			     uint32_t number, struct pybpf_native_page *out);

#endif
