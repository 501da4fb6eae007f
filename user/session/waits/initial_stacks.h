// SPDX-License-Identifier: Apache-2.0
/* Stacks of the threads that sleep when the run begins: no switch shows them. */
#ifndef SESSION_INITIAL_STACKS_H
#define SESSION_INITIAL_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"
#include "pybpf_wait.h"

struct session;
struct session_measure;
struct session_account;

struct session_initial_stack {
	uint64_t proc_id;
	uint32_t tid;
	bool gil, with_gil; /* it waits for the GIL, or has it */
	uint64_t stack_id;  /* PYBPF_STACK_ID_EARLIER: Python does not know the thread */
};

/* A process with threads whose stacks are still to be read. */
struct session_initial_process {
	uint64_t proc_id;
	size_t next, end; /* these threads, places in session_initial_stacks.found */
	uint32_t after;   /* the process after it in its user's queue */
	uint64_t turn;    /* in which it was not known yet what it runs */
	bool cut;         /* not all code objects of its last answer were taken */
	double front_s;   /* time that it has taken since it is the first of the queue */
};

struct session_initial_stacks {
	struct intern stacks;             /* struct session_initial_stack, by process and thread */
	struct intern known;              /* stacks by process and content */
	struct pybpf_thread_found *found; /* threads that slept when the run began, by process */
	size_t nr_found, found_room;
	struct session_initial_process *processes;
	uint32_t nr_processes, placed; /* placed: how many, from the first one on, are in the queues of their users */
	struct intern users;           /* queues of processes */
	uid_t last_uid;                /* the user whose threads were read last */
	uint64_t turn;
	double begin, next;  /* of the reading, and of its next turn, CLOCK_MONOTONIC seconds */
	double tables_until; /* until then they wait for tables of native frames */
	uint64_t late;       /* threads that woke, or ended, before their stacks were read, or could not be read */
	uint64_t unread_ns;  /* time of threads in the profile whose stacks were not read */
};

void session_initial_stacks_init(struct session_initial_stacks *l);
void session_initial_stacks_free(struct session_initial_stacks *l);

/* Finds the threads that sleep, which needs rights; their stacks are read later. Returns 0 or negative errno. */
int session_initial_stacks_find(struct session *s);
/*
 * Reads the stacks of threads that have slept since the start, of processes that are known by now, for some
 * milliseconds at most; users take turns. now: CLOCK_MONOTONIC seconds. Returns when to call it next, a large number
 * for never.
 */
double session_initial_stacks_look(struct session *s, double now);
/* Returns what was read of the thread of a wait that began before the run, or NULL. */
const struct session_initial_stack *session_initial_stacks_get(const struct session_initial_stacks *l,
							       const struct pybpf_wait_key *key);

/* Notes a wait that is in the profile. */
void session_initial_stacks_note(struct session_initial_stacks *l, const struct pybpf_wait_key *key, uint64_t ns);
/* Puts the threads whose stacks were not read into the account. */
void session_initial_stacks_tell(const struct session *s, struct session_account *account);

extern const struct session_measure session_initial_stacks_measure;

#endif
