/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Who holds the GIL, and which sleeps of a thread are one wait for it: a thread that waits wakes up every 5 ms (the
 * switch interval), asks for the GIL and sleeps again.
 */
#ifndef PYBPF_WAIT_GIL_BPF_H
#define PYBPF_WAIT_GIL_BPF_H

#include "maps.bpf.h"
#include "pybpf_wait.h"

/* Waits for the GIL are told from each other, and other waits with the GIL from those without (--mode=gil). */
const volatile bool cfg_gil_waits;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pybpf_gil_waits);
} gil_waits SEC(".maps");

/* Returns whether a thread holds the GIL; *owner is valid if the GIL could be read. */
static __always_inline bool read_owner(const struct pybpf_layout *l, __u64 gil, struct gil_owner *owner)
{
	gil += PYBPF_GIL_LAST_HOLDER + (l->free_threaded ? 8 : 0);
	if (compat_read_user(owner, sizeof(*owner), gil))
		return false;
	owner->locked = (__u32)owner->locked; /* an int and its padding */
	return owner->last_holder && owner->locked == 1;
}

/*
 * musl 1.2 (pthread_cond_timedwait.c): a waiter's futex, barrier, is in a struct waiter {prev, next, state, barrier} on
 * its stack, and the newest waiter is at _c_head, the second word of pthread_cond_t. With glibc that word is a small
 * number (__g1_start). The thread that goes to sleep came last, or a few came in between.
 */
#define MUSL_COND_HEAD      8
#define MUSL_WAITER_NEXT    8
#define MUSL_WAITER_BARRIER 20
#define MUSL_WAITERS        4

static __always_inline bool is_musl_waiter(__u64 cond, __u64 futex)
{
	__u64 at = cond + MUSL_COND_HEAD, waiter;

	for (int i = 0; i < MUSL_WAITERS; i++) {
		if (compat_read_user(&waiter, sizeof(waiter), at) || !(waiter >> 32))
			return false;
		if (waiter + MUSL_WAITER_BARRIER == futex)
			return true;
		at = waiter + MUSL_WAITER_NEXT;
	}
	return false;
}

enum gil_futex {
	GIL_FUTEX_NONE,
	GIL_FUTEX_TAKE,      /* the thread wants the GIL */
	GIL_FUTEX_HAND_OVER, /* it has let it go, and waits until another thread has it (drop_gil()) */
};

/* Tells what a thread wants of the GIL that sleeps on the futex; futex: 0 if it sleeps on none. */
static __always_inline enum gil_futex find_gil_futex(const struct pybpf_layout *l, __u64 gil, __u64 futex)
{
	__u64 shift = l->free_threaded ? 8 : 0;

	if (!gil || !futex)
		return GIL_FUTEX_NONE;
	if (futex - gil < PYBPF_GIL_SIZE)
		return futex - gil < PYBPF_GIL_SWITCH_COND + shift ? GIL_FUTEX_TAKE : GIL_FUTEX_HAND_OVER;
	if (is_musl_waiter(gil + shift + PYBPF_GIL_COND, futex))
		return GIL_FUTEX_TAKE;
	return is_musl_waiter(gil + shift + PYBPF_GIL_SWITCH_COND, futex) ? GIL_FUTEX_HAND_OVER : GIL_FUTEX_NONE;
}

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
 * The thread goes to sleep. It has waited for the GIL all the time if the GIL has not changed hands since its last
 * sleep (take_gil() counts that in switch_number), or if it ran too short to have had it.
 */
static __always_inline void gil_wait_begins(struct pybpf_thread *thread, const struct leaving *leaving)
{
	__u64 ran_ns = thread->running_ns - thread->gil_running_ns;
	bool for_gil = leaving->use == GIL_FUTEX_TAKE;
	struct pybpf_gil_waits *waits;

	if (!for_gil || leaving->stack_id != thread->stack_id ||
	    (leaving->owner.switch_number != thread->gil_switches && ran_ns >= GIL_ASKED_AGAIN_NS))
		thread->gil_waited_ns = 0;
	if (!thread->gil_waited_ns || leaving->holder_stack_id != thread->holder_stack_id)
		thread->gil_blocked_ns = 0;
	waits = for_gil && !thread->gil_waited_ns ? gil_waits_get() : 0;
	if (waits)
		waits->count++;
	thread->gil_switches = leaving->owner.switch_number;
	thread->gil_running_ns = thread->running_ns;
}

static __always_inline void gil_wait_ends(struct pybpf_thread *thread, __u64 ns)
{
	struct pybpf_gil_waits *waits = gil_waits_get();

	thread->gil_waited_ns += ns;
	thread->gil_blocked_ns += ns;
	if (waits && thread->gil_waited_ns > waits->longest_ns)
		waits->longest_ns = thread->gil_waited_ns;
}

#endif
