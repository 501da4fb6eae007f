/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the thread of a sample does besides its stack: whether it holds the GIL, collects garbage, handles an exception.
 */
#ifndef PYBPF_STATE_BPF_H
#define PYBPF_STATE_BPF_H

#include "maps.bpf.h"

/* Only samples of threads that hold the GIL, or that are attached in a free-threaded build. */
const volatile bool cfg_gil;
/*
 * --mode=gil: waits for the GIL are told from each other, and other waits with the GIL from those without; samples of
 * threads that hold it are counted, and no others.
 */
const volatile bool cfg_gil_waits;
/* Only samples of threads that raise or handle an exception. */
const volatile bool cfg_exception;
/* Samples within a garbage collection are told apart. */
const volatile bool cfg_gc;

/* Most exceptions being handled, one within the other, that are looked at: each generator has one of its own. */
#define STATE_HANDLED 16

/* PyTypeObject.tp_flags from the end of the object's header on, and Py_TPFLAGS_BASE_EXC_SUBCLASS (2.7 to 3.15). */
#define STATE_TYPE_FLAGS    152
#define STATE_EXCEPTION_BIT (1ull << 30)

/* What is known of a thread's state. */
enum state_answer {
	STATE_NO,
	STATE_YES,
	STATE_UNKNOWN, /* this Python does not tell, or the memory could not be read */
};

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
static __always_inline enum state_answer state_holds_gil(const struct scratch *s, const struct pybpf_layout *l)
{
	const struct pybpf_runtime *runtime;

	if (l->tstate_status)
		return s->walk.attached ? STATE_YES : STATE_NO;
	runtime = state_runtime(s);
	if (!runtime || !runtime->tstate_current)
		return STATE_UNKNOWN;
	return s->walk.current ? STATE_YES : STATE_NO;
}

/* Counts a sample of a thread that holds the GIL by whose machine code it ran. */
static __always_inline void state_count_holder(const struct scratch *s)
{
	const struct pybpf_layout *l = bpf_map_lookup_elem(&layouts, &s->layout);
	const struct pybpf_runtime *runtime = state_runtime(s);
	enum pybpf_counter whose = PYBPF_COUNT_GIL_OTHER_CODE;

	if (!l || !runtime || l->free_threaded || state_holds_gil(s, l) != STATE_YES)
		return;
	if (!s->user_ip)
		whose = PYBPF_COUNT_GIL_KERNEL;
	else if (!runtime->code_size)
		whose = PYBPF_COUNT_GIL_UNKNOWN_CODE;
	else if (s->walk.in_jit || s->user_ip - (runtime->interp_head - runtime->code_before) < runtime->code_size)
		whose = PYBPF_COUNT_GIL_INTERPRETER;
	count(PYBPF_CONTEXT_EVENT, whose);
}

/* Returns whether the object is an exception: where none is handled there is NULL or None. */
static __always_inline bool state_is_exception(struct walk *w, const struct pybpf_layout *l, __u64 object)
{
	__u64 type = 0, flags = 0;

	return object && !walk_read(w, &type, sizeof(type), object + l->code_type) &&
	       !walk_read(w, &flags, sizeof(flags), type + l->code_type + 8 + STATE_TYPE_FLAGS) &&
	       (flags & STATE_EXCEPTION_BIT);
}

/* The thread's innermost thread state, after the walk. */
static __always_inline __u64 state_tstate(const struct walk *w)
{
	return w->states.count ? w->states.tstate[0] : w->tstate;
}

static __always_inline enum state_answer state_has_exception(struct walk *w, const struct pybpf_layout *l)
{
	__u64 tstate = state_tstate(w), raised = 0, item = 0;
	struct {
		__u64 value, second, previous; /* to 3.10 a traceback is the second, from 3.11 on previous is */
	} handled;

	if (!l->tstate_handled || !l->tstate_raised)
		return STATE_UNKNOWN;
	if (walk_read(w, &raised, sizeof(raised), tstate + l->tstate_raised) ||
	    walk_read(w, &item, sizeof(item), tstate + l->tstate_handled))
		return STATE_UNKNOWN;
	if (raised)
		return STATE_YES;
	for (int i = 0; i < STATE_HANDLED && item; i++) {
		__u32 size = l->handled_value ? 24 : 16;

		if (walk_read(w, &handled, size, item + l->handled_value))
			return STATE_UNKNOWN;
		if (state_is_exception(w, l, handled.value))
			return STATE_YES;
		item = l->handled_value ? handled.previous : handled.second;
	}
	return STATE_NO;
}

/*
 * Returns whether this thread collects garbage. 3.15+ has the frame that set off the collection: the thread whose
 * innermost frame that is. Before, it is a thread that holds the GIL meanwhile; a free-threaded build lets other
 * threads run during a collection, and does not tell whose it is.
 */
static __always_inline bool state_is_collecting(struct walk *w, const struct pybpf_layout *l, bool holds_gil)
{
	__u64 addr = 0, frame = 0, own = 0;
	__u32 collecting = 0;

	if (!holds_gil || (l->free_threaded && !l->interp_gc_frame))
		return false;
	if (l->collecting_from_head)
		addr = w->interp_head + l->collecting_from_head;
	else if (l->interp_collecting && w->tstate_interp)
		addr = w->tstate_interp + l->interp_collecting;
	if (!addr || walk_read(w, &collecting, sizeof(collecting), addr) || collecting != 1)
		return false;
	if (!l->interp_gc_frame)
		return true;
	return !walk_read(w, &frame, sizeof(frame), w->tstate_interp + l->interp_gc_frame) &&
	       !walk_read(w, &own, sizeof(own), state_tstate(w) + l->tstate_frame) && frame && frame == own;
}

/*
 * Returns PYBPF_COUNT_PYTHON if the sample, whose walk has found a stack, is wanted, else the counter of what it is.
 * Its stack gets the flag of a garbage collection.
 */
static __always_inline enum pybpf_counter state_judge(struct scratch *s)
{
	const struct pybpf_layout *l = bpf_map_lookup_elem(&layouts, &s->layout);
	enum state_answer holds, answer = STATE_YES;

	if (!l)
		return PYBPF_COUNT_STATE_UNKNOWN;
	holds = state_holds_gil(s, l);
	if (cfg_gil)
		answer = holds;
	if (cfg_exception && answer == STATE_YES)
		answer = state_has_exception(&s->walk, l);
	if (answer != STATE_YES)
		return answer == STATE_NO ? PYBPF_COUNT_OTHER_STATE : PYBPF_COUNT_STATE_UNKNOWN;
	if (cfg_gc && state_is_collecting(&s->walk, l, holds == STATE_YES))
		s->walk.stack.flags |= PYBPF_STACK_GC;
	return PYBPF_COUNT_PYTHON;
}

#endif
