// SPDX-License-Identifier: Apache-2.0
#include "kernel/native.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel/internal.h"

int kernel_add_native_chunk(struct kernel *k)
{
	uint32_t number = k->nr_chunks;
	int *chunks, chunk, err;

	if (number == k->options.native_chunks)
		return -E2BIG;
	chunks = realloc(k->chunks, (number + 1) * sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	k->chunks = chunks;
	chunk = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(uint32_t), sizeof(struct pybpf_native_page),
			       PYBPF_NATIVE_CHUNK_PAGES, NULL);
	if (chunk < 0)
		return chunk;
	err = bpf_map_update_elem(bpf_map__fd(k->skel->maps.native_chunks), &number, &chunk, BPF_ANY);
	if (err) {
		close(chunk);
		return err;
	}
	chunks[k->nr_chunks++] = chunk;
	return 0;
}

uint32_t kernel_count_native_chunks(const struct kernel *k)
{
	return k->nr_chunks;
}

int kernel_write_native_page(struct kernel *k, uint32_t page, const struct pybpf_native_page *content)
{
	uint32_t chunk = page / PYBPF_NATIVE_CHUNK_PAGES, at = page % PYBPF_NATIVE_CHUNK_PAGES;

	return chunk < k->nr_chunks ? bpf_map_update_elem(k->chunks[chunk], &at, content, BPF_ANY) : -ENOENT;
}

int kernel_read_native_page(const struct kernel *k, uint32_t page, struct pybpf_native_page *out)
{
	uint32_t chunk = page / PYBPF_NATIVE_CHUNK_PAGES, at = page % PYBPF_NATIVE_CHUNK_PAGES;

	return chunk < k->nr_chunks ? bpf_map_lookup_elem(k->chunks[chunk], &at, out) : -ENOENT;
}

int kernel_put_native_list(struct kernel *k, uint64_t proc_id, const struct pybpf_native_list *list)
{
	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.native_lists), &proc_id, list, BPF_ANY);
}

void kernel_delete_native_list(struct kernel *k, uint64_t proc_id)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.native_lists), &proc_id);
}
