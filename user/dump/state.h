// SPDX-License-Identifier: Apache-2.0
/* What a thread does at this moment, as /proc tells it: runs, or sleeps and what for. */
#ifndef DUMP_STATE_H
#define DUMP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs.h"
#include "dump/peers.h"
#include "helper/helper.h"
#include "pybpf_wait.h"

struct dump_state {
	struct pybpf_wait wait; /* state and cause, as a wait in --mode=wall has them */
	uint64_t futex;         /* address of the futex on which it sleeps, or 0 */
	bool has_limit;         /* its sleep has a timeout */
	uint64_t stack_pointer; /* of the program; 0: not known, as of a thread that runs */
	uint64_t pc;            /* likewise: where it goes on */
	uint64_t socket;        /* inode of the socket for which it waits and which is not described yet, or 0 */
	/* How often it has left a CPU to wait, and because another one was to have it. */
	uint64_t sleeps, preemptions;
	bool ended;
};

/* What a thread did when freeze.h stopped it. */
enum dump_stopped {
	DUMP_NOT_STOPPED,
	DUMP_STOPPED_RUNNING,   /* it was on a CPU, or ready for one */
	DUMP_STOPPED_ASLEEP,    /* it was in the sleep of a system call */
	DUMP_STOPPED_BY_SIGNAL, /* a signal had stopped it */
};

struct dump_stop {
	enum dump_stopped what;
	/* The system call of who was asleep; on arm64 only, where /proc does not tell that of a stopped thread. */
	struct procfs_call call;
};

/* Reads the state of a thread; to be called in a helper process (helper.h). Returns 0 or negative errno. */
int dump_look_at_state(pid_t pid, pid_t tid, const struct dump_stop *stop, struct dump_state *out);
/* As dump_look_at_state(), by a helper: dump_judge_reading() says what an error means for the thread. */
int dump_read_state(pid_t pid, pid_t tid, const struct dump_stop *stop, struct dump_state *out);

/*
 * Describes the sockets for which threads of the process wait: whom each is connected to. Those that are not found
 * stay as they are; so do unix sockets without peers, which may be NULL. Returns 0 or negative errno.
 */
int dump_describe_sockets(pid_t pid, const struct dump_peers *peers, struct dump_state *const *states, size_t count);

/* How helpers answer: rows of the table in cli/services.c. */
helper_service dump_serve_state, dump_serve_sockets;

#endif
