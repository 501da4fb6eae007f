/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the two sides share of waits: the states of threads, what a thread waits for, and how its time is kept. */
#ifndef PYBPF_WAIT_H
#define PYBPF_WAIT_H

#include "pybpf.h"

/*
 * The states of a thread, which take turns and leave no gap.
 * X(name, how people are told of it)
 */
#define PYBPF_STATES(X)                                                                                                \
	X(RUNNING, "on CPU")                                                                                           \
	X(QUEUED, "waiting for a CPU") /* woken, or pushed off by others */                                            \
	X(THROTTLED, "throttled")      /* likewise, but its control group has used up its share of the CPUs */         \
	X(GIL, "GIL")                                                                                                  \
	X(LOCK, "lock")                                                                                                \
	X(DISK, "disk")                                                                                                \
	X(NETWORK, "network")                                                                                          \
	X(PIPE, "pipe")                                                                                                \
	X(POLL, "poll") /* of several descriptors, or of an epoll set */                                               \
	X(CHILD, "child")                                                                                              \
	X(SLEEP, "sleep")                                                                                              \
	X(STOPPED, "stopped")                                                                                          \
	X(OTHER, "other")

enum pybpf_state {
#define X(name, text) PYBPF_STATE_##name,
	PYBPF_STATES(X)
#undef X
	PYBPF_NR_STATES,
};

/* Returns whether a thread in this state has no CPU, and is not asleep. */
static inline int pybpf_state_is_ready(__u32 state)
{
	return state == PYBPF_STATE_QUEUED || state == PYBPF_STATE_THROTTLED;
}

/*
 * What a system call does, as far as a wait in it is concerned. User space makes the table of numbers, which differ by
 * architecture.
 * X(name, word in a wait's name)
 */
#define PYBPF_CALLS(X)                                                                                                 \
	X(NONE, "")                                                                                                    \
	X(FUTEX, "")                                                                                                   \
	X(SLEEP, "")                                                                                                   \
	X(POLL, "")   /* an array of struct pollfd */                                                                  \
	X(SELECT, "") /* a set of descriptors */                                                                       \
	X(EPOLL, "")                                                                                                   \
	X(READ, "read") /* this and the next: the first argument is a descriptor */                                    \
	X(WRITE, "write")                                                                                              \
	X(RECEIVE, "receive")                                                                                          \
	X(SEND, "send")                                                                                                \
	X(ACCEPT, "accept")                                                                                            \
	X(CONNECT, "connect")                                                                                          \
	X(SYNC, "sync")                                                                                                \
	X(METADATA, "metadata") /* fstat, fchmod, and so on */                                                         \
	X(SENDFILE, "")         /* of two descriptors: the written one, the read one */                                \
	X(COPY, "")             /* likewise, the read one, an offset, the written one */                               \
	X(SPLICE, "")           /* likewise; which of them it waits for is told by a disk only */                      \
	X(LOCK, "file")                                                                                                \
	X(PATH, "") /* of a path: open, stat, rename, and so on */                                                     \
	X(CHILD, "")                                                                                                   \
	X(ANY_CHILD, "") /* without a PID in its first argument: vfork, waitid */                                      \
	X(CLONE, "")     /* that of a vfork waits for the child, others for the kernel's locks */                      \
	X(IPC, "System V IPC")                                                                                         \
	X(SIGNAL, "signal")                                                                                            \
	X(IO, "asynchronous I/O")                                                                                      \
	X(FAULT, "page fault")    /* no system call, or absent memory of its arguments */                              \
	X(MEMORY, "memory stall") /* whatever its system call does */                                                  \
	X(RESTART, "")            /* the rest of a wait that a signal broke off */                                     \
	X(OTHER, "")              /* number: the system call */

enum pybpf_call {
#define X(name, text) PYBPF_CALL_##name,
	PYBPF_CALLS(X)
#undef X
	PYBPF_NR_CALLS,
};

/* System calls with greater numbers are PYBPF_CALL_OTHER. */
#define PYBPF_MAX_SYSCALL 511

/* What a descriptor is. */
enum pybpf_file_type {
	PYBPF_FILE_NONE,
	PYBPF_FILE_REGULAR, /* also directories and block devices; text: its name without folders */
	PYBPF_FILE_PIPE,
	PYBPF_FILE_DEVICE,    /* text: its name */
	PYBPF_FILE_ANONYMOUS, /* an eventfd, a timerfd, and so on; text: its name */
	PYBPF_FILE_INET,      /* address: of the peer, or the own one of a socket that listens; number: the port */
	PYBPF_FILE_INET6,
	PYBPF_FILE_UNIX,    /* text: the path of the socket, or of its peer; an abstract one begins with NUL */
	PYBPF_FILE_SOCKET,  /* of another family, in number */
	PYBPF_FILE_PROCESS, /* number: its PID, or 0 */
};

#define PYBPF_WAIT_TEXT 48
/* A longer text keeps this many bytes of its beginning, and as many of its end as have room. */
#define PYBPF_WAIT_HEAD 20
#define PYBPF_WAIT_TAIL (PYBPF_WAIT_TEXT - 1 - PYBPF_WAIT_HEAD)

/* What a thread waits for. Equal ones have equal ids, made of all bytes. */
struct pybpf_wait {
	__u8 state;   /* enum pybpf_state */
	__u8 call;    /* enum pybpf_call */
	__u8 file;    /* enum pybpf_file_type: of the descriptor */
	__u8 flags;   /* enum pybpf_wait_flags */
	__u32 number; /* a port; with PYBPF_CALL_POLL and _SELECT how many descriptors; with _CHILD the PID, or 0 for
			 any; with _OTHER the number of the system call; of PYBPF_STATE_THROTTLED the quota, in
			 thousandths of a CPU */
	union {
		__u8 address[16];
		char text[PYBPF_WAIT_TEXT];
	};
};
_Static_assert(sizeof(struct pybpf_wait) == 56, "pybpf_wait has no hidden padding, and is made of whole words");

enum pybpf_wait_flags {
	PYBPF_WAIT_DATAGRAM = 1u << 0,  /* a UDP socket, for one */
	PYBPF_WAIT_LISTENING = 1u << 1, /* also a datagram socket without a peer: address and port are its own */
	PYBPF_WAIT_ACCEPTED = 1u << 4,  /* a connection of a server: number is its own port, and there is no address */
	PYBPF_WAIT_HAND_OVER = 1u << 2, /* not for the GIL: until another thread has taken it */
	PYBPF_WAIT_CUT = 1u << 3, /* the text is cut; number: its full length, or 0: the text is only its beginning */
};

/*
 * Id of a state without more to say. That of a struct pybpf_wait is greater, and has the state in the same bits: so the
 * state is known also where the struct never came.
 */
#define PYBPF_WAIT_ID(state)    ((__u64)(state))
#define PYBPF_WAIT_STATE_MASK   15ULL
#define PYBPF_WAIT_STATE_OF(id) ((id)&PYBPF_WAIT_STATE_MASK)
_Static_assert(PYBPF_NR_STATES <= PYBPF_WAIT_STATE_MASK + 1, "a state fits its bits");
/* Added to the id of a wait that a thread spent with the GIL (--mode=gil). */
#define PYBPF_WAIT_WITH_GIL (PYBPF_WAIT_STATE_MASK + 1)

/* A wait that is seen for the first time. */
struct pybpf_wait_event {
	struct pybpf_event event;
	__u64 wait_id;
	struct pybpf_wait wait;
};
_Static_assert(sizeof(struct pybpf_wait_event) == 72, "pybpf_wait_event has no hidden padding");

/* Key of maps wait_times. */
struct pybpf_wait_key {
	__u64 stack_id; /* of the thread, as it went to sleep */
	struct pybpf_thread_key thread;
	__u64 wait_id; /* PYBPF_WAIT_ID(PYBPF_STATE_RUNNING): all the time that an ended thread was on a CPU */
	/* The stack of the thread that held the GIL when this one went to sleep for it; or an enum pybpf_holder. */
	__u64 holder_stack_id;
	__u64 waker_id; /* of the thread that ended the wait, or an enum pybpf_waker_id; 0 without --wakers */
};
_Static_assert(sizeof(struct pybpf_wait_key) == 48, "pybpf_wait_key has no hidden padding");

/* Shorter waits are added up, but not sent: 1,000 records of a thread a second are the most. */
#define PYBPF_INTERVAL_NS 1000000

/* A wait that has ended, or the time after it until the thread had a CPU: a part of the time under its key. */
struct pybpf_interval_event {
	struct pybpf_event event;
	__u64 time_ns; /* its start, in pybpf's CLOCK_MONOTONIC */
	__u64 ns;
	struct pybpf_wait_key key;
};
_Static_assert(sizeof(struct pybpf_interval_event) == 72, "pybpf_interval_event has no hidden padding");

enum pybpf_holder {
	PYBPF_HOLDER_UNKNOWN,
	PYBPF_HOLDER_NONE, /* nobody held it: the thread that gets it next had not run yet */
	PYBPF_HOLDERS,
};

enum pybpf_waker_id {
	PYBPF_WAKER_UNKNOWN,
	PYBPF_WAKER_TIMER,
	PYBPF_WAKER_INTERRUPT, /* of the network, a disk, or a timer for one of them */
	PYBPF_WAKER_UNNAMED,   /* a thread for which there was no room */
	PYBPF_WAKERS = 16,     /* a waker's own id is this or more */
};

/* A thread that ended a wait, at that time. */
struct pybpf_waker {
	__u64 stack_id; /* 0: none, as it is no Python that is sampled */
	__u32 tid;      /* 0: outside of pybpf's PID namespace */
	__u32 pad;
	char comm[16];
};

/* A waker that is seen for the first time; its id is a hash of all its bytes. */
struct pybpf_waker_event {
	struct pybpf_event event;
	__u64 waker_id;
	struct pybpf_waker waker;
};
_Static_assert(sizeof(struct pybpf_waker_event) == 48, "pybpf_waker_event has no hidden padding");

struct pybpf_wait_time {
	__u64 count; /* a wait for the GIL counts once: for the holder that it met first */
	__u64 ns;
	__u64 longest_ns; /* of a wait for the GIL, whoever held it until then */
};

/* Value of map gil_waits: the waits for the GIL, whoever held it. One per CPU. */
struct pybpf_gil_waits {
	__u64 count;
	__u64 longest_ns;
};

/*
 * The callback that a thread's event loop is in: see callback.bpf.h. Value of map callbacks; key: the thread's PID in
 * the initial PID namespace.
 */
struct pybpf_callback {
	__u64 proc_id;
	__u64 task;     /* address of the task whose step it is, or 0 */
	__u64 contexts; /* walk.contexts, which stays the same as long as the callback runs */
	__u64 first_ns; /* the thread was in the callback at that time, and at last_ns */
	__u64 last_ns;
	__u64 seen_stack_id; /* at last_ns, or when it went to sleep */
	__u64 seen_ns;       /* since when its stack, as far as known, was that */
	__u64 stack_id;      /* the earlier stack that stayed for the longest time */
	__u64 stack_ns;
	__u32 tid;
	__u32 left; /* the thread left its CPU in the callback, and has not come back */
};
_Static_assert(sizeof(struct pybpf_callback) == 80, "pybpf_callback has no hidden padding");

/* Key of map blocks: the callbacks of a thread that took too long, by stack; the value is a struct pybpf_wait_time. */
struct pybpf_block_key {
	__u64 stack_id;
	__u64 proc_id;
	__u32 tid;
	__u32 has_task;
};

/* Value of map threads: a thread and its state. Key: its PID in the initial PID namespace. */
struct pybpf_thread {
	struct pybpf_thread_key id;
	__u64 begin_ns; /* of its time in this program, in the kernel's CLOCK_MONOTONIC */
	__u64 since_ns; /* begin of the state, likewise */
	__u64 woken_ns; /* when the thread was woken since then, or 0 */
	__u64 stack_id;
	__u64 wait_id;
	__u64 ready_id;        /* of the wait for a CPU after woken_ns */
	__u64 holder_stack_id; /* as in struct pybpf_wait_key; so is the next */
	__u64 waker_id;
	__u64 running_ns; /* time on a CPU until since_ns */
	__u64 exec_ns;    /* the scheduler's count of it (se.sum_exec_runtime) when the thread last left a CPU */
	/* The wait for the GIL that the thread is in, or has just left; see wait_gil.bpf.h. */
	__u64 gil_switches;   /* how often the GIL had changed hands when the thread last went to sleep */
	__u64 gil_running_ns; /* running_ns at that time */
	__u64 gil_waited_ns;  /* of this wait until then */
	/* Those of its sleeps that are not in map wait_times yet: when the first began, their sum, and their key there.
	 */
	__u64 gil_begin_ns;
	__u64 gil_ns;
	struct pybpf_wait_key gil_key;
	__u32 state; /* enum pybpf_state; RUNNING, or any other while wait_id is what it waits for */
	__u32 moved; /* it has run since it was first seen */
};
_Static_assert(sizeof(struct pybpf_thread) == 192, "pybpf_thread has no hidden padding");

/* What the iterator says of a thread that was there before. */
struct pybpf_thread_found {
	__u64 proc_id;
	__u64 thread_id; /* pthread_self() */
	__u64 futex;     /* on which it sleeps, or 0 */
	__u64 polled;    /* address of the struct pollfd for which it waits alone, or 0 */
	/* With cfg_native: with which it entered the kernel. */
	__u64 pc, sp, bp;
	__u32 pid; /* in the initial PID namespace: the key in map threads */
	__u32 tid;
};

#endif
