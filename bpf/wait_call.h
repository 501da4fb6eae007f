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
/* Returns the flags of a struct clone_args in the thread's memory, or 0. */
static __always_inline __u64 wait_clone_flags(WAIT_THREAD *thread, __u64 clone_args);
/* Returns whether the thread waits for a disk: for pages of a file, whatever its system call does. */
static __always_inline bool wait_is_for_disk(WAIT_THREAD *thread);
/* Returns whether the kernel holds the thread up for lack of memory, but not while it waits for a disk. */
static __always_inline bool wait_is_for_memory(WAIT_THREAD *thread);
/* Returns whether the PIDs that the thread knows are those of pybpf's own namespace. */
static __always_inline bool wait_has_our_pids(WAIT_THREAD *thread);

/* The kernel's name of an epoll set (do_epoll_create(), fs/eventpoll.c). */
static const char wait_epoll_set[] = "[eventpoll]";

static __always_inline bool wait_is_for_set(const struct pybpf_wait *wait)
{
	bool same = wait->file == PYBPF_FILE_ANONYMOUS;

	for (unsigned i = 0; i < sizeof(wait_epoll_set); i++)
		same = same && wait->text[i] == wait_epoll_set[i];
	return same;
}

/* Describes the only descriptor of a poll(): an epoll set is waited for as by epoll_wait(). */
static __always_inline void wait_describe_polled(struct pybpf_wait *wait, WAIT_THREAD *thread, __u32 fd)
{
	wait->number = 0;
	wait->state = PYBPF_STATE_OTHER;
	wait_describe_descriptor(wait, thread, fd);
	if (wait_is_for_set(wait))
		*wait = (struct pybpf_wait){.state = PYBPF_STATE_POLL, .call = PYBPF_CALL_EPOLL};
}

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
	if (fd >= 0)
		wait_describe_polled(wait, thread, (__u32)fd);
}

/*
 * Describes the descriptor of a call. Who waits for a disk while it sends, or fills a pipe, waits for the pages that it
 * sends: those of a mapped file, for one.
 */
static __always_inline void wait_describe_transfer(struct pybpf_wait *wait, WAIT_THREAD *thread, __u32 fd)
{
	wait_describe_descriptor(wait, thread, fd);
	if (wait->state != PYBPF_STATE_DISK && wait_is_for_disk(thread))
		*wait = (struct pybpf_wait){.state = PYBPF_STATE_DISK, .call = PYBPF_CALL_FAULT};
}

/* Describes that one of two descriptors for which the thread waits: reading from a disk is what it waits for there. */
static __always_inline void wait_describe_copy(struct pybpf_wait *wait, WAIT_THREAD *thread, __u64 read, __u64 written)
{
	bool reads = wait_is_for_disk(thread);

	wait->call = reads ? PYBPF_CALL_READ : PYBPF_CALL_WRITE;
	wait_describe_descriptor(wait, thread, (__u32)(reads ? read : written));
}

/* CLOCK_TAI is the last clock of include/uapi/linux/time.h. */
#define WAIT_CLOCKS 12
/* No address of a program is less, and no program polls as many descriptors. */
#define WAIT_PAGE 4096
/* FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, also with FUTEX_CLOCK_REALTIME: include/uapi/linux/futex.h */
#define WAIT_FUTEX_MONOTONIC 0x89
#define WAIT_FUTEX_REALTIME  0x189

/*
 * Returns which system call goes on as restart_syscall(). After SIGSTOP and SIGCONT, or another signal without a
 * handler, a wait with a time limit has that number, and the arguments that it had before: of a futex, of poll(), of
 * clock_nanosleep() with a clock, or of nanosleep() (include/linux/restart_block.h lists who uses it).
 */
static __always_inline __u8 wait_call_of_restart(const __u64 *args)
{
	__u32 second = (__u32)args[1];

	if ((second == WAIT_FUTEX_MONOTONIC || second == WAIT_FUTEX_REALTIME) && args[0] >= WAIT_PAGE && !(args[0] & 3))
		return PYBPF_CALL_FUTEX;
	if (args[0] < WAIT_CLOCKS && args[1] <= 1 && args[2] >= WAIT_PAGE)
		return PYBPF_CALL_SLEEP;
	return args[1] && args[1] < WAIT_PAGE ? PYBPF_CALL_POLL : PYBPF_CALL_SLEEP;
}

/* include/uapi/linux/sched.h; the number is the same on x86-64 and arm64 (include/uapi/asm-generic/unistd.h). */
#define WAIT_CLONE_VFORK 0x4000
#define WAIT_NR_CLONE3   435

/* Returns whether a clone is a vfork, which waits until the child has another program or has ended. */
static __always_inline bool wait_is_vfork(WAIT_THREAD *thread, __s64 number, const __u64 *args)
{
	return (number == WAIT_NR_CLONE3 ? wait_clone_flags(thread, args[0]) : args[0]) & WAIT_CLONE_VFORK;
}

/*
 * Says what a thread waits for that sleeps in wait->call, with these first three arguments; the rest of *wait is all
 * zero. number: of the system call. The address of a futex is in *futex, which is 0 before.
 */
static __always_inline void wait_describe_call(struct pybpf_wait *wait, WAIT_THREAD *thread, __s64 number,
					       const __u64 *args, __u64 *futex)
{
	wait->state = PYBPF_STATE_OTHER;
	if (wait_is_for_memory(thread)) {
		wait->call = PYBPF_CALL_MEMORY;
		return;
	}
	if (wait->call == PYBPF_CALL_RESTART)
		wait->call = wait_call_of_restart(args);
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
	case PYBPF_CALL_METADATA:
		wait_describe_transfer(wait, thread, (__u32)args[0]);
		break;
	case PYBPF_CALL_SENDFILE:
		wait_describe_copy(wait, thread, args[1], args[0]);
		break;
	case PYBPF_CALL_SPLICE:
		if (!wait_is_for_disk(thread)) {
			wait->call = PYBPF_CALL_OTHER;
			wait->number = (__u32)number;
			break;
		}
		__attribute__((fallthrough));
	case PYBPF_CALL_COPY:
		wait_describe_copy(wait, thread, args[0], args[2]);
		break;
	case PYBPF_CALL_LOCK:
		wait_describe_descriptor(wait, thread, (__u32)args[0]);
		wait->state = PYBPF_STATE_LOCK;
		break;
	case PYBPF_CALL_CHILD:
		wait->state = PYBPF_STATE_CHILD;
		if ((__s32)args[0] > 0 && wait_has_our_pids(thread))
			wait->number = (__u32)args[0];
		break;
	case PYBPF_CALL_ANY_CHILD:
		wait->state = PYBPF_STATE_CHILD;
		break;
	case PYBPF_CALL_PATH:
		wait->state = PYBPF_STATE_DISK;
		break;
	case PYBPF_CALL_CLONE:
		if (wait_is_vfork(thread, number, args)) {
			wait->call = PYBPF_CALL_ANY_CHILD;
			wait->state = PYBPF_STATE_CHILD;
			break;
		}
		wait->call = PYBPF_CALL_OTHER;
		wait->number = (__u32)number;
		break;
	default:
		wait->number = (__u32)number;
		if (wait_is_for_disk(thread))
			wait->state = PYBPF_STATE_DISK;
	}
}

#endif
