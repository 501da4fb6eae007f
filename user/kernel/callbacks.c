// SPDX-License-Identifier: Apache-2.0
/* Reads the maps of callbacks. */
#include "kernel/callbacks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/internal.h"

struct callback_visit {
	int (*visit)(uint32_t pid, const struct pybpf_callback *callback, void *arg);
	void *arg;
};

static int visit_callback(const void *key, const void *value, void *arg)
{
	const struct callback_visit *v = arg;

	return v->visit(*(const uint32_t *)key, value, v->arg);
}

int kernel_visit_callbacks(const struct kernel *k,
			   int (*visit)(uint32_t pid, const struct pybpf_callback *callback, void *arg), void *arg)
{
	struct callback_visit v = {visit, arg};

	return kernel_visit_map(k->skel->maps.callbacks, bpf_map_lookup_batch, visit_callback, &v);
}

struct block_visit {
	int (*visit)(const struct pybpf_block_key *key, const struct pybpf_wait_time *time, void *arg);
	void *arg;
};

static int visit_block(const void *key, const void *value, void *arg)
{
	const struct block_visit *v = arg;

	return v->visit(key, value, v->arg);
}

int kernel_visit_blocks(const struct kernel *k,
			int (*visit)(const struct pybpf_block_key *key, const struct pybpf_wait_time *time, void *arg),
			void *arg)
{
	struct block_visit v = {visit, arg};

	return kernel_visit_map(k->skel->maps.blocks, bpf_map_lookup_batch, visit_block, &v);
}

void kernel_delete_callback(struct kernel *k, uint32_t pid)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.callbacks), &pid);
}

void kernel_delete_block(struct kernel *k, const struct pybpf_block_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.blocks), key);
}

uint64_t kernel_count_lost_callbacks(const struct kernel *k)
{
	return k->skel->bss->callbacks_lost;
}
