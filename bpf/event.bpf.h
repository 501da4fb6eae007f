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

/* Takes a sample of a process that has grown, and whose value is the bytes by which it has. */
SEC("?tracepoint")
int sample_memory(struct trace_event_raw_rss_stat *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct scratch *s = scratch_get(CONTEXT);
	__s64 growth;

	if (!s || !proc || proc->state == PYBPF_PROC_OTHER || proc->state == PYBPF_PROC_UNWANTED)
		return 0;
	growth = memory_growth(proc->proc_id, ctx);
	if (growth > 0) {
		s->value = growth;
		return take_sample(ctx, SOURCE_MEMORY);
	}
	if (growth < 0 && proc->state == PYBPF_PROC_READY && filter_passes())
		__sync_fetch_and_add(&memory_given_back, -growth);
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
