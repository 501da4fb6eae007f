/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a thread waits for, by the system call that it sleeps in: written once, compiled for the kernel and for user
 * space. Before it is included, WAIT_THREAD is the type that both know a thread by; the functions that are only
 * declared here are defined behind it.
 */
#ifndef PYBPF_WAIT_CALL_H
#define PYBPF_WAIT_CALL_H

#include "pybpf_wait.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Describes the thread's descriptor: what it is, and the state of a wait for it. */
static __always_inline void wait_describe_descriptor(struct pybpf_wait *wait, WAIT_THREAD *thread, __u32 fd);
/* Returns the first descriptor of an array of struct pollfd in the thread's memory, or -1. */
static __always_inline __s32 wait_first_polled(WAIT_THREAD *thread, __u64 array);
static __always_inline bool wait_is_for_disk(WAIT_THREAD *thread);

/* Describes the descriptors of a poll(): by the first if it is the only one. */
static __always_inline void wait_describe_poll(struct pybpf_wait *wait, WAIT_THREAD *thread, const __u64 *args)
{
	__s32 fd;

	wait->state = PYBPF_STATE_POLL;
	wait->number = (__u32)args[1];
	if (!wait->number)
		wait->state = PYBPF_STATE_SLEEP;
	if (wait->number != 1)
		return;
	fd = wait_first_polled(thread, args[0]);
	if (fd < 0)
		return;
	wait->number = 0;
	wait->state = PYBPF_STATE_OTHER;
	wait_describe_descriptor(wait, thread, (__u32)fd);
}

/*
 * Says what a thread waits for that sleeps in wait->call, with these first two arguments; the rest of *wait is all
 * zero. The address of a futex is in *futex, which is 0 before.
 */
static __always_inline void wait_describe_call(struct pybpf_wait *wait, WAIT_THREAD *thread, const __u64 *args,
					       __u64 *futex)
{
	wait->state = PYBPF_STATE_OTHER;
	switch (wait->call) {
	case PYBPF_CALL_FAULT:
		if (wait_is_for_disk(thread))
			wait->state = PYBPF_STATE_DISK;
		break;
	case PYBPF_CALL_FUTEX:
		wait->state = PYBPF_STATE_LOCK;
		*futex = args[0];
		break;
	case PYBPF_CALL_SLEEP:
		wait->state = PYBPF_STATE_SLEEP;
		break;
	case PYBPF_CALL_POLL:
		wait_describe_poll(wait, thread, args);
		break;
	case PYBPF_CALL_SELECT:
	case PYBPF_CALL_EPOLL:
		/* select() without descriptors is the sleep of old programs. */
		wait->state = wait->call == PYBPF_CALL_SELECT && !args[0] ? PYBPF_STATE_SLEEP : PYBPF_STATE_POLL;
		break;
	case PYBPF_CALL_READ:
	case PYBPF_CALL_WRITE:
	case PYBPF_CALL_RECEIVE:
	case PYBPF_CALL_SEND:
	case PYBPF_CALL_ACCEPT:
	case PYBPF_CALL_CONNECT:
	case PYBPF_CALL_SYNC:
		wait_describe_descriptor(wait, thread, (__u32)args[0]);
		break;
	case PYBPF_CALL_LOCK:
		wait_describe_descriptor(wait, thread, (__u32)args[0]);
		wait->state = PYBPF_STATE_LOCK;
		break;
	case PYBPF_CALL_CHILD:
		wait->state = PYBPF_STATE_CHILD;
		if ((__s32)args[0] > 0)
			wait->number = (__u32)args[0];
		break;
	case PYBPF_CALL_ANY_CHILD:
		wait->state = PYBPF_STATE_CHILD;
		break;
	case PYBPF_CALL_PATH:
		wait->state = PYBPF_STATE_DISK;
		break;
	default:
		if (wait_is_for_disk(thread))
			wait->state = PYBPF_STATE_DISK;
	}
}

#endif
