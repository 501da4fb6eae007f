// SPDX-License-Identifier: Apache-2.0
/* Reads counters and counts from the kernel's maps by batches, and switches between the sets of maps. */
#include "kernel/counts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/internal.h"

/* Entries that one batch look-up takes from a map. */
#define BATCH 4096

struct kernel_set kernel_get_set(const struct kernel *k, int set)
{
	const struct pybpf_bpf *skel = k->skel;

	if (set)
		return (struct kernel_set){skel->maps.counts_2, skel->maps.stacks_2, skel->maps.codes_2,
					   skel->maps.wait_times_2};
	return (struct kernel_set){skel->maps.counts, skel->maps.stacks, skel->maps.codes, skel->maps.wait_times};
}

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

int kernel_visit_map(const struct bpf_map *map, kernel_batch_call *call,
		     int (*visit)(const void *key, const void *value, void *arg), void *arg)
{
	size_t key_size = bpf_map__key_size(map), value_size = bpf_map__value_size(map);
	char *keys = calloc(BATCH, key_size), *values = calloc(BATCH, value_size);
	uint64_t cursor = 0; /* a hash map's batch position is a bucket number, 4 bytes */
	bool first = true, end = false;
	int err = 0;

	if (!keys || !values)
		err = -ENOMEM;
	while (!err && !end) {
		uint32_t n = BATCH;

		err = call(bpf_map__fd(map), first ? NULL : &cursor, &cursor, keys, values, &n, NULL);
		end = err == -ENOENT;
		if (end)
			err = 0;
		first = false;
		for (uint32_t i = 0; visit && !err && i < n; i++)
			err = visit(keys + i * key_size, values + i * value_size, arg);
	}
	free(keys);
	free(values);
	return err;
}

struct count_visit {
	kernel_count_visitor *visit;
	void *arg;
};

static int visit_count(const void *key, const void *value, void *arg)
{
	const struct count_visit *v = arg;

	return v->visit(key, value, v->arg);
}

static const struct bpf_map *counts_of(const struct kernel *k, uint32_t sets)
{
	return kernel_get_set(k, PYBPF_COUNTS_SET(sets)).counts;
}

static struct kernel_set known_of(const struct kernel *k, uint32_t sets)
{
	return kernel_get_set(k, PYBPF_KNOWN_SET(sets));
}

int kernel_visit_counts(const struct kernel *k, kernel_count_visitor *visit, void *arg)
{
	struct count_visit v = {visit, arg};

	return kernel_visit_map(counts_of(k, k->sets), bpf_map_lookup_batch, visit_count, &v);
}

uint32_t kernel_get_sets(const struct kernel *k)
{
	return k->sets;
}

/*
 * Returns when all samples that were under way at the call are done: an update of a map of maps waits for the programs
 * that may have found the old inner map (maybe_wait_bpf_programs(), Linux 5.0, 1ae80cf31938).
 */
static int wait_for_samples(const struct kernel *k)
{
	uint32_t set = PYBPF_COUNTS_SET(k->sets);
	int fd = bpf_map__fd(counts_of(k, k->sets));

	return bpf_map__update_elem(k->skel->maps.counts_sets, &set, sizeof(set), &fd, sizeof(fd), 0);
}

int kernel_change_sets(struct kernel *k, bool forget, uint64_t *changed_ns)
{
	k->sets = PYBPF_OTHER_COUNTS(k->sets);
	if (forget)
		k->sets = PYBPF_OTHER_KNOWN(k->sets);
	k->skel->bss->current_sets = k->sets;
	*changed_ns = clock_ns(CLOCK_MONOTONIC);
	return wait_for_samples(k);
}

int kernel_take_counts(struct kernel *k, kernel_count_visitor *visit, void *arg)
{
	uint32_t old = PYBPF_OTHER_COUNTS(k->sets);
	__u64 *unsent = &k->skel->bss->unsent_stacks[PYBPF_COUNTS_SET(old)];
	struct count_visit v = {visit, arg};
	int err = kernel_visit_map(counts_of(k, old), bpf_map_lookup_and_delete_batch, visit_count, &v);

	if (!err)
		k->skel->bss->no_frames_keys[PYBPF_COUNTS_SET(old)] = 0;
	/* See count.h: a sample that has raised it must be done before the set is reused. */
	if (err || !*unsent)
		return err;
	*unsent = 0;
	return wait_for_samples(k);
}

int kernel_forget_known(struct kernel *k)
{
	struct kernel_set old = known_of(k, PYBPF_OTHER_KNOWN(k->sets));
	int err = kernel_visit_map(old.stacks, bpf_map_lookup_and_delete_batch, NULL, NULL);

	return err ?: kernel_visit_map(old.codes, bpf_map_lookup_and_delete_batch, NULL, NULL);
}

void kernel_delete_count(struct kernel *k, const struct pybpf_count_key *key)
{
	if (!bpf_map_delete_elem(bpf_map__fd(counts_of(k, k->sets)), key) && key->no_frames_reason)
		__sync_fetch_and_sub(&k->skel->bss->no_frames_keys[PYBPF_COUNTS_SET(k->sets)], 1);
}

void kernel_delete_stack(struct kernel *k, uint64_t stack_id)
{
	bpf_map_delete_elem(bpf_map__fd(known_of(k, k->sets).stacks), &stack_id);
}

void kernel_delete_code(struct kernel *k, const struct pybpf_code_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(known_of(k, k->sets).codes), key);
}

void kernel_get_thread_name(const struct kernel *k, const struct pybpf_thread_key *key, struct pybpf_thread_name *name)
{
	memset(name, 0, sizeof(*name));
	bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.thread_names), key, name);
}

void kernel_put_thread_name(struct kernel *k, const struct pybpf_thread_key *key, const struct pybpf_thread_name *name)
{
	bpf_map_update_elem(bpf_map__fd(k->skel->maps.thread_names), key, name, BPF_ANY);
}

void kernel_delete_thread_name(struct kernel *k, const struct pybpf_thread_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.thread_names), key);
}
