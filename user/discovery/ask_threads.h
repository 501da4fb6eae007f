// SPDX-License-Identifier: Apache-2.0
/* Reads the stacks of threads that sleep in a helper process, many threads of a process at a time. */
#ifndef DISCOVERY_ASK_THREADS_H
#define DISCOVERY_ASK_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helper/helper.h"
#include "pybpf.h"

/* Most threads of one question. */
#define ASK_THREADS_MAX 256

struct ask_thread {
	uint64_t thread_id; /* pthread_self() */
	uint64_t futex;     /* on which it sleeps, or 0 */
	uint64_t polled;    /* address of the struct pollfd for which it waits alone, or 0 */
	int32_t tid;
	uint32_t pad;
};

struct ask_threads {
	uint64_t life; /* number of the program that the process runs, never used twice */
	pid_t pid;
	uint32_t nr_runtimes, count;
	bool tell_again; /* the taker has not taken all code objects of the last answer */
	struct pybpf_runtime runtimes[PYBPF_MAX_RUNTIMES];
	struct pybpf_layout layouts[PYBPF_MAX_RUNTIMES]; /* of these */
	struct ask_thread threads[ASK_THREADS_MAX];
};

enum ask_threads_outcome {
	ASK_THREADS_STACK,
	ASK_THREADS_NO_STACK, /* no runtime knows the thread */
	ASK_THREADS_TOO_LONG, /* the walk took too long */
};

struct ask_threads_stack {
	enum ask_threads_outcome outcome;
	bool wants_gil, has_gil;
	int32_t polled; /* descriptor in that struct pollfd; -1: none */
	uint32_t runtime;
	uint32_t depth, flags; /* as in struct pybpf_stack_event */
	size_t kept;           /* frames */
	const struct pybpf_frame *frames;
};

/*
 * Takes the answer. The functions return 0 or a negative errno, which ends the taking: the next question about the
 * process is to have tell_again then.
 */
struct ask_threads_taker {
	/* A code object of the stacks that follow, as the kernel would announce it; what is missing cannot be read. */
	int (*code)(const struct pybpf_code_event *event, size_t size, void *arg);
	/* thread: its place in the question. */
	int (*stack)(uint32_t thread, const struct ask_threads_stack *stack, void *arg);
	void *arg;
};

/*
 * Asks for the stacks of the threads, and hands over those that were read within about slice_s seconds. *done: how many
 * threads of the question, from the first on, have an answer; the others are to be asked for again. It may be 0, as the
 * list of the process's thread states is read first, over several questions if it is long. Returns 0, a taker's errno,
 * or another negative errno when the process had no answer: it is not to be asked again. -ENOMEM is this process's;
 * that of a helper is -ENOBUFS.
 */
int discovery_ask_threads(const struct ask_threads *asked, double slice_s, const struct ask_threads_taker *taker,
			  uint32_t *done);

/* How helpers answer: a row of the table in cli/services.c. */
helper_service discovery_serve_threads;

#endif
