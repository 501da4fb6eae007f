// SPDX-License-Identifier: Apache-2.0
#include "native/page.h"

#include <string.h>

uint32_t native_pages_of_rows(uint64_t rows)
{
	return (uint32_t)((rows + PYBPF_NATIVE_PAGE_ROWS - 1) / PYBPF_NATIVE_PAGE_ROWS);
}

uint32_t native_pages_of_mappings(size_t mappings)
{
	return (uint32_t)(mappings / PYBPF_NATIVE_PAGE_MAPPINGS) + 1;
}

void native_page_of_rows(const struct pybpf_native_row *rows, size_t count, uint32_t number,
			 struct pybpf_native_page *out)
{
	size_t first = (size_t)number * PYBPF_NATIVE_PAGE_ROWS, left = first < count ? count - first : 0;

	for (size_t i = 0; i < PYBPF_NATIVE_PAGE_ROWS; i++)
		out->rows[i] =
			i < left ? rows[first + i] : (struct pybpf_native_row){PYBPF_NATIVE_NO_PC, PYBPF_NATIVE_NONE};
}

void native_page_of_mappings(const struct pybpf_native_mapping *mappings, size_t count, uint64_t generation,
			     uint32_t number, struct pybpf_native_page *out)
{
	size_t first = (size_t)number * PYBPF_NATIVE_PAGE_MAPPINGS;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < PYBPF_NATIVE_PAGE_MAPPINGS && first + i <= count; i++) {
		if (first + i)
			out->mappings[i] = mappings[first + i - 1];
		else
			out->mappings[i].start = generation;
	}
}
