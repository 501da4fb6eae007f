/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The walk of a sample and the code objects of its stack, step by step; with bpf_loop from start to end. */
#ifndef PYBPF_LOOP_BPF_H
#define PYBPF_LOOP_BPF_H

#include "announce.bpf.h"
#include "maps.bpf.h"
#include "runtimes.bpf.h"

/* Forgets the thread of this CPU's last sample, unless this sample is of the same thread and of a single runtime. */
static __always_inline void sample_thread(struct scratch *s, struct task_struct *task)
{
	__u64 start = compat_thread_start(task);

	if (s->nr_runtimes == 1 && s->last.task == (__u64)task && s->last.start == start &&
	    s->last.proc_id == s->walk.proc_id)
		return;
	s->last.task = s->nr_runtimes == 1 ? (__u64)task : 0;
	s->last.start = start;
	s->last.proc_id = s->walk.proc_id;
	s->last.states.count = 0;
}

/* Says which thread is walked. */
static __always_inline void prepare_walk(struct scratch *s, const struct pybpf_proc *proc, struct task_struct *task,
					 __u32 tid)
{
	s->walk.proc_id = proc->proc_id;
	s->tid = tid;
	if (COMPAT_THREAD_BIAS) {
		s->thread_pointer = compat_thread_pointer(task);
		if (s->thread_pointer == proc->stale_pointer && compat_task_switches(task) == proc->stale_switches)
			s->thread_pointer = 0;
	} else {
		s->walk.thread_id = compat_thread_pointer(task);
	}
	s->nr_runtimes = proc->nr_runtimes;
}

/*
 * Starts the walk of the current thread, after prepare_walk; its registers are there. l: of the first runtime. Returns
 * 0 when the thread is known to have no frames.
 */
static __always_inline int walk_begin(struct scratch *s, const struct pybpf_proc *proc, struct task_struct *task,
				      const struct pybpf_layout *l)
{
	sample_thread(s, task);
	if (s->nr_runtimes < 2)
		return begin_runtime(s, l, &proc->runtimes[0], 0);
	prepare_turns(s, proc);
	return 1;
}

/* A sample on its way. It is on the stack of the program, whose functions are called one after the other. */
struct loop_context {
	struct scratch *s;
	const struct pybpf_layout *l;
	int full;
};

static __noinline int find_task(struct scratch *s, const struct pybpf_layout *l)
{
	walk_find_task(&s->walk, l);
	return 0;
}

/*
 * Does what is due between two steps of the walk, whose stack must not be below a step's. Returns 1 when the walk is
 * done; else s->layout is that of the runtime to walk.
 */
static __always_inline int walk_pause(struct scratch *s, const struct pybpf_layout *l)
{
	if (cfg_async && s->walk.task_due)
		return find_task(s, l);
	return s->nr_runtimes < 2 || !next_runtime(s);
}

/* Does the next step of the sample's walk. Returns 1 when sample_pause is to be called before the next one. */
static __always_inline int sample_step(struct scratch *s, const struct pybpf_layout *l)
{
	return !has_walk(s) || (cfg_async && s->walk.task_due) || walk_step(&s->walk, l);
}

/*
 * With bpf_loop (Linux 5.17, e6f2dd0f8067), one program takes the whole sample. Its steps are global functions, so that
 * the verifier goes through each once, and not once for each path that leads to it.
 */
__noinline int loop_step(struct scratch *s, const struct pybpf_layout *l)
{
	return !s || !l || sample_step(s, l);
}

/* Returns 1 when the walk is done. */
__noinline int loop_pause(struct scratch *s)
{
	const struct pybpf_layout *l = s ? layout_get(s->layout) : NULL;

	return !l || walk_pause(s, l);
}

/* Returns 1 when the ring buffer is full. */
__noinline int loop_announce(struct scratch *s, const struct pybpf_layout *l, __u32 i)
{
	return !s || !l || announce_code(s, l, i);
}

static long loop_walk(__u32 i, struct loop_context *c)
{
	const struct pybpf_layout *l;

	if (!loop_step(c->s, c->l))
		return 0;
	if (loop_pause(c->s))
		return 1;
	l = layout_get(c->s->layout);
	if (!l)
		return walk_no_stack(&c->s->walk);
	c->l = l;
	return 0;
}

/* Walks to the end. */
static __always_inline void loop_to_end(struct loop_context *c)
{
	if (bpf_loop(WALK_STEPS, loop_walk, c, 0) == WALK_STEPS)
		walk_no_stack(&c->s->walk);
}

static long loop_codes(__u32 i, struct loop_context *c)
{
	c->full = is_set(loop_announce(c->s, c->l, i));
	return c->full;
}

#endif
