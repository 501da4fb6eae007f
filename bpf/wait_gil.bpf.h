/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which sleeps of a thread are one wait for the GIL: a thread that waits wakes up when the switch interval is over (5
 * ms, unless sys.setswitchinterval() says another), asks for the GIL and sleeps again. In 2.7 it does so each time when
 * another thread lets the GIL go.
 */
#ifndef PYBPF_WAIT_GIL_BPF_H
#define PYBPF_WAIT_GIL_BPF_H

#include "maps.bpf.h"
#include "pybpf_wait.h"
#include "thread_activity.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pybpf_gil_waits);
} gil_waits SEC(".maps");

/*
 * A thread that wakes up for the GIL, does not get it and sleeps again is on a CPU for some 10 us. If one had the GIL
 * for a shorter time between two waits with the same stack, these are taken for one.
 */
#define GIL_ASKED_AGAIN_NS 50000

static __always_inline struct pybpf_gil_waits *gil_waits_get(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&gil_waits, &first);
}

/*
 * The thread goes to sleep. Returns whether that is a part of the wait that it has just left: it has waited for the GIL
 * all the time if the GIL has not changed hands since its last sleep (take_gil() counts that in switch_number; 2.7 does
 * not), or if it ran too short to have had it.
 */
static __always_inline bool gil_wait_goes_on(const struct pybpf_thread *thread, const struct leaving *leaving)
{
	__u64 ran_ns = thread->running_ns - thread->gil_running_ns;
	__u64 switches = leaving->owner.switch_number;

	return thread->gil_waited_ns && leaving->use == GIL_FUTEX_TAKE && leaving->stack_id == thread->stack_id &&
	       ((switches != GIL_UNCOUNTED && switches == thread->gil_switches) || ran_ns < GIL_ASKED_AGAIN_NS);
}

/* goes_on: of gil_wait_goes_on(). */
static __always_inline void gil_wait_begins(struct pybpf_thread *thread, const struct leaving *leaving, bool goes_on)
{
	struct pybpf_gil_waits *waits;

	if (!goes_on)
		thread->gil_waited_ns = 0;
	waits = leaving->use == GIL_FUTEX_TAKE && !goes_on ? gil_waits_get() : 0;
	if (waits)
		waits->count++;
	thread->gil_switches = leaving->owner.switch_number;
	thread->gil_running_ns = thread->running_ns;
}

static __always_inline void gil_wait_ends(struct pybpf_thread *thread, __u64 ns)
{
	struct pybpf_gil_waits *waits = gil_waits_get();

	thread->gil_waited_ns += ns;
	if (waits && thread->gil_waited_ns > waits->longest_ns)
		waits->longest_ns = thread->gil_waited_ns;
}

#endif
