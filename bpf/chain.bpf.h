/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler for kernels without bpf_loop, in parts that call each other. It begins as begin_sample in pybpf.bpf.c. */
#ifndef PYBPF_CHAIN_BPF_H
#define PYBPF_CHAIN_BPF_H

#include "announce.bpf.h"
#include "loop.bpf.h"
#include "maps.bpf.h"
#include "outcome.bpf.h"

/*
 * Without bpf_loop: a bounded loop, then a tail call to the same program; the kernel allows 33 tail calls
 * (MAX_TAIL_CALL_CNT). The loops call global functions, which the verifier checks once and not in every iteration
 * (5.6, 51c39bb1d5d1). User space fills the map.
 */
#define CHAIN_STEPS     1024
#define CHAIN_CALLS     31
#define CHAIN_ANNOUNCED 1024

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PYBPF_CHAIN_PROGRAMS);
	__type(key, __u32);
	__type(value, __u32);
} chain SEC(".maps");

static __always_inline int chain_next(void *ctx, __u32 program)
{
	bpf_tail_call(ctx, &chain, program);
	return 0;
}

/* Returns the scratch memory of the current sample, and its layout in *l; NULL if either is missing. */
static __always_inline struct scratch *chain_get(const struct pybpf_layout **l)
{
	struct scratch *s = scratch_get(CONTEXT);

	*l = s ? layout_get(s->layout) : NULL;
	return *l ? s : NULL;
}

/* Returns 1 when chain_pause is to be called before the next step. */
__noinline int chain_step(void)
{
	const struct pybpf_layout *l;
	struct scratch *s = chain_get(&l);

	return !s || sample_step(s, l);
}

/* Returns 1 when the walk is done. */
__noinline int chain_pause(void)
{
	const struct pybpf_layout *l;
	struct scratch *s = chain_get(&l);

	return !s || walk_pause(s, l);
}

__noinline int chain_announce(__u32 i)
{
	const struct pybpf_layout *l;
	struct scratch *s = chain_get(&l);

	return s && i < frames_kept(s) ? announce_code(s, l, i) : 0;
}

static __noinline int chain_begin(void *ctx, struct loop_context *c)
{
	return begin_sample(ctx, SOURCE_PERF_EVENT, c, false);
}

SEC("?perf_event")
int sample_chain(void *ctx)
{
	struct loop_context c = {};

	if (!chain_begin(ctx, &c) || !c.s)
		return 0;
	c.s->chain_calls = 0;
	return chain_next(ctx, PYBPF_CHAIN_WALK);
}

SEC("?perf_event")
int chain_walk(void *ctx)
{
	struct scratch *s = scratch_get(CONTEXT);

	if (!s)
		return 0;
	for (int i = 0; i < CHAIN_STEPS; i++) {
		if (chain_step() && chain_pause())
			return chain_next(ctx, PYBPF_CHAIN_FINISH);
	}
	if (++s->chain_calls < CHAIN_CALLS)
		return chain_next(ctx, PYBPF_CHAIN_WALK);
	/* As in walk_end: frames reached from the thread state are correct even if the walk did not reach the root. */
	if (s->walk.phase == WALK_FRAME && s->walk.attempt == WALK_FIRST && !s->walk.place && !s->walk.unproved &&
	    s->nr_runtimes < 2)
		s->walk.stack.flags |= PYBPF_STACK_NO_ROOT;
	else
		walk_no_stack(&s->walk);
	return chain_next(ctx, PYBPF_CHAIN_FINISH);
}

SEC("?perf_event")
int chain_finish(void *ctx)
{
	const struct pybpf_layout *l;
	struct scratch *s = chain_get(&l);
	int full = 0;

	if (!s || !sample_describe(s) || !sample_count(s))
		return 0;
	for (__u32 i = 0; i < CHAIN_ANNOUNCED && !full; i++)
		full = chain_announce(i);
	if (full || send_stack(s))
		stack_unsent(s->sets, s->walk.stack.stack_id);
	return 0;
}

#endif
