// SPDX-License-Identifier: Apache-2.0
#include "kernel/counts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/internal.h"

/* Entries that one batch look-up takes from a map. */
#define BATCH 4096

int kernel_read_counters(const struct kernel *k, uint64_t total[PYBPF_NR_COUNTERS])
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	struct pybpf_counters *each;

	memset(total, 0, PYBPF_NR_COUNTERS * sizeof(*total));
	if (cpus < 0)
		return cpus;
	each = calloc((size_t)cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	for (uint32_t context = 0; context < PYBPF_CONTEXTS && !err; context++) {
		err = bpf_map__lookup_elem(k->skel->maps.counters, &context, sizeof(context), each,
					   (size_t)cpus * sizeof(*each), 0);
		for (int cpu = 0; !err && cpu < cpus; cpu++) {
			for (int i = 0; i < PYBPF_NR_COUNTERS; i++)
				total[i] += each[cpu].value[i];
		}
	}
	free(each);
	return err;
}

int kernel_visit_counts(const struct kernel *k, kernel_count_visitor *visit, void *arg)
{
	struct pybpf_count_key *keys = calloc(BATCH, sizeof(*keys));
	struct pybpf_count *counts = calloc(BATCH, sizeof(*counts));
	int fd = bpf_map__fd(k->skel->maps.counts), err = 0;
	uint64_t cursor = 0; /* a hash map's batch position is a bucket number, 4 bytes */
	bool first = true, end = false;

	if (!keys || !counts)
		err = -ENOMEM;
	while (!err && !end) {
		uint32_t n = BATCH;

		err = bpf_map_lookup_batch(fd, first ? NULL : &cursor, &cursor, keys, counts, &n, NULL);
		end = err == -ENOENT;
		if (end)
			err = 0;
		first = false;
		for (uint32_t i = 0; !err && i < n; i++)
			err = visit(&keys[i], &counts[i], arg);
	}
	free(keys);
	free(counts);
	return err;
}

void kernel_delete_count(struct kernel *k, const struct pybpf_count_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.counts), key);
}

void kernel_delete_stack(struct kernel *k, uint64_t stack_id)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.stacks), &stack_id);
}

void kernel_delete_code(struct kernel *k, const struct pybpf_code_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.codes), key);
}

void kernel_get_thread_name(const struct kernel *k, const struct pybpf_thread_key *key, struct pybpf_thread_name *name)
{
	memset(name, 0, sizeof(*name));
	bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.thread_names), key, name);
}

void kernel_delete_thread_name(struct kernel *k, const struct pybpf_thread_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.thread_names), key);
}
