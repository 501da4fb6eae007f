// SPDX-License-Identifier: Apache-2.0
/*
 * Processes of pybpf's own: each is forked for one job, has a socket to the process that started it, and ends when that
 * socket is closed, for whatever reason. Programs that pybpf executes for the user are not meant.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* start.c: the side that starts a process. */

/* Zeroed: there is no process. */
struct child {
	pid_t pid; /* 0: there is no process */
	int socket;
};

/* What the process does. It has to call child_say_begun() first. When it returns, the process ends. */
typedef void child_main(int socket, void *state);

/*
 * Forks a process and waits until it has begun. Their socket keeps messages apart (SOCK_SEQPACKET). does: the job, for
 * messages such as "the process that DOES ended before it began". To be called by a process with one thread. Returns 0,
 * or negative errno with a sentence in *error; there is no process then.
 */
int child_start(struct child *child, const char *does, child_main *run, void *state, struct error *error);
/*
 * Closes the socket and waits for the process to end, for at most this many seconds (INFINITY: as long as it takes);
 * one that was stopped is left to itself then. May be called twice, and on a zeroed struct.
 */
void child_end(struct child *child, double patience_s);

/*
 * Maps memory that is shared with processes that are forked later; zeroed. Returns 0 with *memory, which the caller
 * unmaps; or negative errno with a sentence in *error, and *memory NULL.
 */
int child_share_memory(void **memory, size_t size, const char *does, struct error *error);

/* setup.c: the process itself, before it works. */

/*
 * Blocks the signals that a terminal or a service manager sends to all processes, and every other one that does not
 * tell of a fault of this process: the process that started this one decides when it ends.
 */
void child_block_signals(void);
/*
 * Lets go of what pybpf was started with: replaces the standard streams up to last_stream by ones that hold nothing,
 * closes all other descriptors but stderr and the kept ones, which it sorts, and leaves the folder. Returns 0 or
 * negative errno.
 */
int child_let_go(int last_stream, int *kept, size_t count);
/* Sets a limit of setrlimit(2) for good. Never fails: lowering one is always allowed, and a lower one stays. */
void child_limit(int what, uint64_t value);
/*
 * Says whether it has begun: error->code 0, or why it cannot. Returns whether it is to go on: it has begun, and the
 * other process is there.
 */
bool child_say_begun(int socket, const struct error *error);
/* Ends this process when its parent ends, or at once if that is not the given one any more. */
void child_tie(pid_t parent);

/* restart.c: a process that forks the one that works, and once more whenever that one has crashed. */

struct child_worker {
	const char *name;                 /* as ps shows it */
	void (*run)(void *state);         /* the process ends when it returns */
	bool (*count_crash)(void *state); /* in the process that forked it; returns whether to fork it again */
};

/* Returns when the worker has ended by itself, count_crash says so, or no process can be forked. */
void child_keep(const struct child_worker *worker, void *state);

#endif
