/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler: from a perf event's interrupt to a counted stack. */
#include "compat.bpf.h"
#include "maps.bpf.h"
#include "count.h"
#include "kernel_stack.bpf.h"
#include "loop.bpf.h"
#include "native.bpf.h"
#include "outcome.bpf.h"
#include "process.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Hits of a tracepoint or a function per sample; perf counts the period of its events by itself. */
const volatile __u64 cfg_tracepoint_period;

/* Counts a sample of an undecided process, for user space to classify once it knows what the process is. */
static __always_inline void count_undecided(const struct pybpf_proc *proc)
{
	/* The sample counts as 1, whatever its kind. */
	struct pybpf_count_key key = {.stack_id = PYBPF_STACK_ID_UNDECIDED, .thread.proc_id = proc->proc_id};
	void *map = counts_of(sets_now());
	struct pybpf_count *seen;
	int fresh;

	if (!map)
		return;
	seen = bpf_map_lookup_elem(map, &key);
	if (seen)
		count_add(seen, 0);
	else if (count_first(map, &key, 0, &fresh))
		count(CONTEXT, PYBPF_COUNT_TABLE_FULL);
}

/* Counts a sample of a process that is not in map procs because the map is full. Kernel threads are never in it. */
static __always_inline void sample_unknown(struct task_struct *task)
{
	if (!cfg_all || !procs_full || !compat_current_mm(task) || !filter_passes())
		return;
	count(CONTEXT, PYBPF_COUNT_NO_ROOM);
}

enum verdict {
	SAMPLE_DONE,   /* not of a wanted process whose interpreter is known: counted, if the process is wanted */
	SAMPLE_ENDING, /* of such a process; its thread is ending and has no memory any more */
	SAMPLE_WANTED,
};

/* A process without Python costs one look-up. */
static __always_inline enum verdict judge_sample(const struct pybpf_proc *proc, struct task_struct *task)
{
	__u64 mm = compat_current_mm(task);

	if (cfg_all && (proc->state == PYBPF_PROC_OTHER || proc->state == PYBPF_PROC_UNWANTED))
		return SAMPLE_DONE;
	if (!filter_passes())
		return SAMPLE_DONE;
	if (proc->state == PYBPF_PROC_READY && !mm)
		return SAMPLE_ENDING;
	if (proc->state == PYBPF_PROC_READY && proc->mm == mm) {
		if (compat_memory_is_current())
			return SAMPLE_WANTED;
		count(CONTEXT, PYBPF_COUNT_UNREADABLE);
		return SAMPLE_DONE;
	}
	if (proc->state == PYBPF_PROC_READY || proc->state == PYBPF_PROC_OTHER)
		count(CONTEXT, PYBPF_COUNT_OTHER_PROGRAM);
	else if (proc->state != PYBPF_PROC_UNWANTED)
		count_undecided(proc);
	return SAMPLE_DONE;
}

/* The event that starts a program, and the type of its context. */
enum source {
	SOURCE_PERF_EVENT, /* struct bpf_perf_event_data */
	SOURCE_TRACEPOINT, /* the fields of a tracepoint or the registers of a uprobe, which are not used */
	SOURCE_MEMORY,     /* as a tracepoint; the value is there */
};

/* loops: bpf_loop is there; its absence is no matter of a constant, as old verifiers refuse what names a callback. */
static __always_inline void take_source(struct scratch *s, void *ctx, enum source source, bool loops)
{
	struct walk *w = &s->walk;

	if (cfg_cookies)
		s->kind = compat_cookie(ctx);
	if (kind_of(s) != PYBPF_KIND_CPU && source != SOURCE_MEMORY)
		s->value = source == SOURCE_PERF_EVENT ? ((struct bpf_perf_event_data *)ctx)->sample_period
						       : cfg_tracepoint_period;
	s->nr_registers = source == SOURCE_PERF_EVENT ? compat_registers(ctx, w->candidates, &w->stack_pointer)
						      : compat_entry_registers(w->candidates, &w->stack_pointer);
	if (cfg_gil_waits && source == SOURCE_PERF_EVENT)
		s->user_ip = compat_user_ip(ctx);
	take_kernel(s, ctx, CONTEXT);
	if (loops)
		native_take(s, CONTEXT, source == SOURCE_PERF_EVENT ? ctx : NULL);
}

/*
 * Does everything before the walk. Returns 1 with the walk started, or 0 if the sample ends here; it is then counted if
 * it was wanted.
 */
static __always_inline int begin_sample(void *ctx, enum source source, struct loop_context *c, bool loops)
{
	struct task_struct *task = compat_task();
	__u64 pid_tgid = compat_pid_tgid(task);
	__u32 tgid = pid_tgid >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	const struct pybpf_layout *l;
	enum verdict verdict;
	struct scratch *s;

	if (cfg_gil_waits && !(proc && proc->state == PYBPF_PROC_READY && proc->mm == compat_current_mm(task)))
		return 0;
	if (!proc) {
		sample_unknown(task);
		return 0;
	}
	verdict = judge_sample(proc, task);
	if (verdict == SAMPLE_DONE)
		return 0;
	s = scratch_get(CONTEXT);
	l = layout_get(proc->runtimes[0].layout);
	if (!s || !l) {
		count(CONTEXT, PYBPF_COUNT_NO_SCRATCH);
		return 0;
	}
	prepare_walk(s, proc, task, (__u32)pid_tgid);
	take_source(s, ctx, source, loops);
	if (verdict == SAMPLE_ENDING || compat_is_kernel_worker(task)) {
		count_without_frames(verdict == SAMPLE_ENDING ? PYBPF_COUNT_NO_INTERPRETER
							      : PYBPF_COUNT_NO_THREAD_STATE);
		return 0;
	}
	if (!walk_begin(s, proc, task, l)) {
		count_without_frames(PYBPF_COUNT_NO_THREAD_STATE);
		return 0;
	}
	c->s = s;
	c->l = l;
	return 1;
}

/*
 * begin_sample out of line, as sample_describe and sample_count are: their stacks are used one after the other, and not
 * with that of the walk.
 */
static __noinline int sample_begin(void *ctx, enum source source, struct loop_context *c)
{
	return begin_sample(ctx, source, c, true);
}

static __always_inline int take_sample(void *ctx, enum source source)
{
	struct loop_context c = {};

	if (!sample_begin(ctx, source, &c) || !c.s || !c.l)
		return 0;
	loop_to_end(&c);
	if (!sample_describe(c.s) || !sample_count(c.s))
		return 0;
	bpf_loop(frames_kept(c.s), loop_codes, &c, 0);
	if (c.full || send_stack(c.s))
		stack_unsent(c.s->sets, c.s->walk.stack.stack_id);
	return 0;
}

SEC("?perf_event")
int sample_loop(void *ctx)
{
	return take_sample(ctx, SOURCE_PERF_EVENT);
}

#include "chain.bpf.h"
#include "event.bpf.h"
#include "wait.bpf.h"
#include "wait_waker.bpf.h"
