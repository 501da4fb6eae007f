// SPDX-License-Identifier: Apache-2.0
#include "kernel/native.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kernel/internal.h"

/* As the programs have declared it: all inner maps are alike but for their number of elements. */
static int make_array(uint32_t value_size, uint32_t elements)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(uint32_t), value_size, elements, &opts);
}

uint32_t kernel_count_native_pages(size_t rows)
{
	return (uint32_t)((rows + PYBPF_NATIVE_PAGE_ROWS - 1) / PYBPF_NATIVE_PAGE_ROWS);
}

int kernel_make_native_table(size_t rows)
{
	return make_array(sizeof(struct pybpf_native_page), kernel_count_native_pages(rows));
}

int kernel_fill_native_table(int table, size_t first, const struct pybpf_native_row *rows, size_t count)
{
	uint32_t page = (uint32_t)(first / PYBPF_NATIVE_PAGE_ROWS);
	struct pybpf_native_page filled;
	int err = 0;

	for (size_t at = 0; at < count && !err; at += PYBPF_NATIVE_PAGE_ROWS, page++) {
		size_t left = count - at, whole = left < PYBPF_NATIVE_PAGE_ROWS ? left : PYBPF_NATIVE_PAGE_ROWS;

		memcpy(filled.rows, rows + at, whole * sizeof(*rows));
		for (size_t i = whole; i < PYBPF_NATIVE_PAGE_ROWS; i++)
			filled.rows[i] = (struct pybpf_native_row){PYBPF_NATIVE_NO_PC, PYBPF_NATIVE_NONE};
		err = bpf_map_update_elem(table, &page, &filled, BPF_ANY);
	}
	return err;
}

int kernel_put_native_table(struct kernel *k, uint32_t file, int table)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.native_tables), &file, &table, BPF_ANY);
}

void kernel_delete_native_table(struct kernel *k, uint32_t file)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.native_tables), &file);
}

int kernel_put_native_mappings(struct kernel *k, uint64_t proc_id, uint64_t generation,
			       const struct pybpf_native_mapping *mappings, size_t count)
{
	const struct pybpf_native_mappings_head head = {.generation = generation, .count = count};
	int list = make_array(sizeof(*mappings), (uint32_t)count + 1), err;

	if (list < 0)
		return list;
	err = bpf_map_update_elem(list, &(uint32_t){0}, &head, BPF_ANY);
	for (uint32_t i = 0; i < count && !err; i++) {
		const uint32_t element = i + 1;

		err = bpf_map_update_elem(list, &element, &mappings[i], BPF_ANY);
	}
	err = err ? err : bpf_map_update_elem(bpf_map__fd(k->skel->maps.native_mappings), &proc_id, &list, BPF_ANY);
	close(list);
	return err;
}

void kernel_delete_native_mappings(struct kernel *k, uint64_t proc_id)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.native_mappings), &proc_id);
}
