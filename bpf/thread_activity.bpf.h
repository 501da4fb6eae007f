/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the thread of a sample does besides its stack: whether it holds the GIL, collects garbage, handles an exception.
 */
#ifndef PYBPF_THREAD_ACTIVITY_BPF_H
#define PYBPF_THREAD_ACTIVITY_BPF_H

#include "maps.bpf.h"
#include "thread_activity.h"

/* Only samples of threads that hold the GIL, or that are attached in a free-threaded build. */
const volatile bool cfg_gil;
/*
 * --mode=gil: waits for the GIL are distinguished from each other, and other waits with the GIL from those without;
 * samples of threads that hold it are counted, and no others.
 */
const volatile bool cfg_gil_waits;
/* Only samples of threads that raise or handle an exception. */
const volatile bool cfg_exception;
/* Samples within a garbage collection are marked. */
const volatile bool cfg_gc;

/* Returns the runtime that was walked, or NULL. */
static __always_inline const struct pybpf_runtime *state_runtime(const struct scratch *s)
{
	__u32 tgid = compat_pid_tgid(compat_task()) >> 32;
	const struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	return proc ? &proc->runtimes[s->runtime & (PYBPF_MAX_RUNTIMES - 1)] : NULL;
}

/*
 * To 3.11 a variable says which thread state holds the GIL, from 3.12 on each thread state says whether it is attached:
 * a thread sets both after it took the GIL, and clears them before it lets it go.
 */
static __always_inline enum walk_answer state_holds_gil(const struct scratch *s, const struct pybpf_layout *l)
{
	const struct pybpf_runtime *runtime;

	if (l->tstate_status)
		return s->walk.attached ? WALK_YES : WALK_NO;
	runtime = state_runtime(s);
	if (!runtime || !runtime->tstate_current)
		return WALK_UNKNOWN;
	return s->walk.current ? WALK_YES : WALK_NO;
}

/* Counts a sample of a thread that holds the GIL by whose machine code it ran. */
static __always_inline void state_count_holder(const struct scratch *s)
{
	const struct pybpf_layout *l = layout_get(s->layout);
	const struct pybpf_runtime *runtime = state_runtime(s);
	enum pybpf_counter whose = PYBPF_COUNT_GIL_OTHER_CODE;

	if (!l || !runtime || l->free_threaded || state_holds_gil(s, l) != WALK_YES)
		return;
	if (!s->user_ip)
		whose = PYBPF_COUNT_GIL_KERNEL;
	else if (!runtime->code_size)
		whose = PYBPF_COUNT_GIL_UNKNOWN_CODE;
	else if (s->walk.in_jit || s->user_ip - (runtime->interp_head - runtime->code_before) < runtime->code_size)
		whose = PYBPF_COUNT_GIL_INTERPRETER;
	count(PYBPF_CONTEXT_EVENT, whose);
}

/*
 * Returns PYBPF_COUNT_PYTHON if the sample, whose walk has found a stack, is wanted, else the counter of what it is.
 * Its stack gets the flag of a garbage collection.
 */
static __always_inline enum pybpf_counter state_judge(struct scratch *s)
{
	const struct pybpf_layout *l = layout_get(s->layout);
	enum walk_answer holds, answer = WALK_YES;
	__u64 exception;

	if (!l)
		return PYBPF_COUNT_STATE_UNKNOWN;
	holds = state_holds_gil(s, l);
	if (cfg_gil)
		answer = holds;
	if (cfg_exception && answer == WALK_YES)
		answer = walk_find_exception(&s->walk, l, &exception);
	if (answer != WALK_YES)
		return answer == WALK_NO ? PYBPF_COUNT_OTHER_STATE : PYBPF_COUNT_STATE_UNKNOWN;
	if (cfg_gc && walk_is_collecting(&s->walk, l, holds == WALK_YES))
		s->walk.stack.flags |= PYBPF_STACK_GC;
	return PYBPF_COUNT_PYTHON;
}

#endif
