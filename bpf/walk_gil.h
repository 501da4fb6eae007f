/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The GIL: where it is, who holds it, and which futexes are its own. It is a struct from 3.7 on, some static variables
 * in 3.6, and a semaphore in 2.7. Whether the thread of a sample holds it is told without it (state_holds_gil() in
 * state.bpf.h).
 */
#ifndef PYBPF_WALK_GIL_H
#define PYBPF_WALK_GIL_H

#include "pybpf_wait.h"
#include "thread_activity.h"
#include "walk_thread.h"

/*
 * struct _gil_runtime_state of 3.7 to 3.15 (pycore_gil.h): 208 bytes; a free-threaded build has 8 more before them.
 * Every futex inside belongs to it: a thread that waits for the GIL sleeps on cond, mutex or switch_cond in turn.
 * musl's condition variables sleep on the waiter's own stack: see is_musl_waiter().
 */
#define GIL_SIZE 216
/* cond, mutex, switch_cond and switch_mutex come one after the other, the first here; likewise 8 further. */
#define GIL_COND        32
#define GIL_SWITCH_COND 120

/* The words of the GIL that say who holds it, in the order of the struct (3.7+). */
struct gil_owner {
	__u64 last_holder;
	__u64 locked;
	__u64 switch_number;
};

/* In place of the switch number of 2.7, which does not count. */
#define GIL_UNCOUNTED (~0ULL)

/*
 * Returns the address of the GIL of the thread whose walk is done, or 0: of the interpreter that it is in, which its
 * innermost thread state has. Interpreters with a GIL of their own and those that share the main one's both point to it
 * (3.12+). That of a GIL in variables is what their offsets count from.
 */
static __always_inline __u64 walk_find_gil(struct walk *w, const struct pybpf_layout *l)
{
	__u64 tstate = walk_innermost_tstate(w), interp = 0, gil = 0;

	if (l->gil_from_head)
		return w->interp_head + l->gil_from_head;
	if (l->interp_gil && tstate &&
	    (walk_read(w, &interp, sizeof(interp), tstate + l->tstate_interp) || !interp ||
	     walk_read(w, &gil, sizeof(gil), interp + l->interp_gil)))
		return 0;
	return l->gil.last_holder ? w->interp_head : gil;
}

/* Finds the semaphore that is 2.7's GIL; 0 before the program has threads (PyEval_InitThreads()). */
static __always_inline __u64 gil_semaphore(struct walk *w, const struct pybpf_layout *l, __u64 gil)
{
	__u64 semaphore = 0;

	return walk_read(w, &semaphore, sizeof(semaphore), gil + l->gil.lock) ? 0 : semaphore;
}

/* A sem_t begins with its value, a 32-bit number; with musl bit 31 says that threads wait, or -1 does (to 1.2.3). */
#define SEMAPHORE_VALUE 0x7fffffffU
#define SEMAPHORE_FREE  1U

/*
 * A thread of 2.7 sets _PyThreadState_Current after it took the semaphore, and clears it before it lets it go
 * (PyEval_RestoreThread(), PyEval_SaveThread()).
 */
static __always_inline bool read_gil_owner_27(struct walk *w, const struct pybpf_layout *l, __u64 gil,
					      struct gil_owner *owner)
{
	__u64 semaphore = gil_semaphore(w, l, gil);
	__u32 value = SEMAPHORE_FREE;

	owner->switch_number = GIL_UNCOUNTED;
	if (!semaphore || walk_read(w, &value, sizeof(value), semaphore))
		return false;
	owner->locked = (value & SEMAPHORE_VALUE) != SEMAPHORE_FREE;
	return !walk_read(w, &owner->last_holder, sizeof(owner->last_holder), gil + l->gil.last_holder);
}

static __always_inline bool read_gil_owner_36(struct walk *w, const struct pybpf_layout *l, __u64 gil,
					      struct gil_owner *owner)
{
	__u32 locked = 0;

	if (walk_read(w, &owner->switch_number, sizeof(owner->switch_number), gil + l->gil.switch_number) ||
	    walk_read(w, &locked, sizeof(locked), gil + l->gil.locked))
		return false;
	owner->locked = locked;
	return !walk_read(w, &owner->last_holder, sizeof(owner->last_holder), gil + l->gil.last_holder);
}

/* Returns whether a thread holds the GIL; *owner is valid if the GIL could be read. */
static __always_inline bool read_gil_owner(struct walk *w, const struct pybpf_layout *l, __u64 gil,
					   struct gil_owner *owner)
{
	if (l->gil.lock) {
		if (!read_gil_owner_27(w, l, gil, owner))
			return false;
	} else if (l->gil.last_holder) {
		if (!read_gil_owner_36(w, l, gil, owner))
			return false;
	} else {
		gil += PYBPF_GIL_LAST_HOLDER + (l->free_threaded ? PYBPF_GIL_ENABLED : 0);
		if (walk_read(w, owner, sizeof(*owner), gil))
			return false;
		owner->locked = (__u32)owner->locked; /* an int and its padding */
	}
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

static __always_inline bool is_musl_waiter(struct walk *w, __u64 cond, __u64 futex)
{
	__u64 at = cond + MUSL_COND_HEAD, waiter;

	for (int i = 0; i < MUSL_WAITERS; i++) {
		if (walk_read(w, &waiter, sizeof(waiter), at) || !(waiter >> 32))
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

/* pthread_cond_t has 48 bytes; a mutex has its futex in the first 8 (glibc: __lock, the first word; musl: the second).
 */
#define GIL_COND_SIZE  48
#define GIL_MUTEX_SIZE 8

/* Tells what a thread wants of 3.6's GIL that sleeps on the futex. */
static __always_inline enum gil_futex find_gil_futex_36(const struct pybpf_layout *l, __u64 gil, __u64 futex)
{
	__u64 at = futex - gil;

	if (at - l->gil.cond < GIL_COND_SIZE || at - l->gil.mutex < GIL_MUTEX_SIZE)
		return GIL_FUTEX_TAKE;
	if (at - l->gil.switch_cond < GIL_COND_SIZE || at - l->gil.switch_mutex < GIL_MUTEX_SIZE)
		return GIL_FUTEX_HAND_OVER;
	return GIL_FUTEX_NONE;
}

/* Tells what a thread wants of the GIL that sleeps on the futex; futex: 0 if it sleeps on none. */
static __always_inline enum gil_futex find_gil_futex(struct walk *w, const struct pybpf_layout *l, __u64 gil,
						     __u64 futex)
{
	__u64 shift = l->free_threaded ? PYBPF_GIL_ENABLED : 0, cond, switch_cond;
	enum gil_futex use;

	if (!gil || !futex)
		return GIL_FUTEX_NONE;
	if (l->gil.lock)
		return futex == gil_semaphore(w, l, gil) ? GIL_FUTEX_TAKE : GIL_FUTEX_NONE;
	if (l->gil.last_holder) {
		use = find_gil_futex_36(l, gil, futex);
		if (use != GIL_FUTEX_NONE)
			return use;
		cond = gil + l->gil.cond;
		switch_cond = gil + l->gil.switch_cond;
	} else {
		if (futex - gil < GIL_SIZE)
			return futex - gil < GIL_SWITCH_COND + shift ? GIL_FUTEX_TAKE : GIL_FUTEX_HAND_OVER;
		cond = gil + shift + GIL_COND;
		switch_cond = gil + shift + GIL_SWITCH_COND;
	}
	if (is_musl_waiter(w, cond, futex))
		return GIL_FUTEX_TAKE;
	return is_musl_waiter(w, switch_cond, futex) ? GIL_FUTEX_HAND_OVER : GIL_FUTEX_NONE;
}

#endif
