/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Samples of other events than the timer: tracepoints, the growth of memory, calls of functions. They follow what
 * pybpf.bpf.c says of the timer's.
 */
#ifndef PYBPF_EVENT_BPF_H
#define PYBPF_EVENT_BPF_H

#include "maps.bpf.h"
#include "memory.bpf.h"

/* Counts a hit of a tracepoint or a function on this CPU, whoever runs. Returns whether it is the last one of a period.
 */
static __always_inline bool period_ends(void)
{
	struct scratch *s = scratch_get(CONTEXT);

	if (!s || ++s->hits < cfg_tracepoint_period)
		return false;
	s->hits = 0;
	return true;
}

/*
 * Programs on perf's tracepoints and on perf events exclude each other on a CPU (bpf_prog_active in trace_call_bpf()),
 * so both may use the same context.
 */
SEC("?tracepoint")
int sample_tracepoint(void *ctx)
{
	if (cfg_tracepoint_period > 1 && !period_ends())
		return 0;
	return take_sample(ctx, SOURCE_TRACEPOINT);
}

/* Returns whether the process has grown, or its memory was touched: its value is the bytes by which it has grown. */
static __noinline int memory_touches(struct trace_event_raw_rss_stat *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct scratch *s = scratch_get(CONTEXT);
	struct memory_size *seen;
	__s64 growth;
	bool touched;

	if (!s || !proc || proc->state == PYBPF_PROC_OTHER || proc->state == PYBPF_PROC_UNWANTED)
		return 0;
	seen = memory_find(proc->proc_id, ctx);
	if (!seen || !memory_grow(seen, ctx, &growth))
		return 0;
	touched = growth > 0;
	s->touch.what = 0;
	if (proc->state == PYBPF_PROC_READY && filter_passes()) {
		if (growth < 0)
			__sync_fetch_and_add(&memory_given_back, -growth);
		if (cfg_held)
			touched = memory_locate(s, proc->proc_id, seen, ctx->member, growth);
	}
	s->value = growth > 0 ? growth : 0;
	return touched;
}

SEC("?tracepoint")
int sample_memory(struct trace_event_raw_rss_stat *ctx)
{
	return memory_touches(ctx) ? take_sample(ctx, SOURCE_MEMORY) : 0;
}

/* A page fault, which the kernel's software counts before it looks for the page. */
SEC("?perf_event")
int memory_fault(void *ctx)
{
	memory_keep_fault(compat_fault_address(ctx), !compat_is_user(ctx));
	return 0;
}

/* At the end of mmap() and mremap(). */
SEC("?tracepoint")
int memory_mapped(struct trace_event_raw_sys_exit *ctx)
{
	memory_map(ctx->ret);
	return 0;
}

/* Counts the loss of a sample, if it is one of a process that is sampled. */
static __always_inline void lose_busy(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (proc && proc->state == PYBPF_PROC_READY && filter_passes())
		count(CONTEXT, PYBPF_COUNT_NO_SCRATCH);
}

/*
 * A thread may be preempted in a program on a uprobe (since Linux 6.0, 8c7dcb84e3b7), and another thread may then hit
 * one on this CPU.
 */
SEC("?uprobe")
int sample_uprobe(void *ctx)
{
	struct scratch *s = scratch_get(CONTEXT);

	if (!s)
		return 0;
	if (__sync_lock_test_and_set(&s->busy, 1)) {
		lose_busy();
		return 0;
	}
	if (cfg_tracepoint_period <= 1 || period_ends())
		take_sample(ctx, SOURCE_TRACEPOINT);
	*(volatile __u64 *)&s->busy = 0;
	return 0;
}

#endif
