/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The stack of a thread in the kernel. */
#ifndef PYBPF_KERNEL_STACK_BPF_H
#define PYBPF_KERNEL_STACK_BPF_H

#include "announce.bpf.h"
#include "maps.bpf.h"

/* Hashes the addresses in s->kernel. A global function, so that the verifier goes through its loop once. */
__noinline int hash_kernel(__u32 context)
{
	struct scratch *s = scratch_get(context);
	__u64 hash = 0;

	if (!s)
		return 0;
	for (__u32 i = 0; i < PYBPF_KERNEL_FRAMES && i < s->nr_kernel; i++)
		hash = walk_mix(hash, s->kernel[i]);
	s->kernel_hash = hash;
	return 0;
}

/*
 * Takes the stack in the kernel, from the interrupted function on: perf unwinds from the event's registers, so that the
 * interrupt itself is not in it. It is empty if the thread was not in the kernel.
 */
static __always_inline void take_kernel(struct scratch *s, void *ctx, enum pybpf_context context)
{
	long size;

	if (!cfg_kernel_stacks)
		return;
	size = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
	s->nr_kernel = size > 0 ? (__u32)size / sizeof(s->kernel[0]) : 0;
	hash_kernel(context);
}

#endif
