// SPDX-License-Identifier: Apache-2.0
/* Shared by the side that asks (helper.c, worker.c, forkserver.c, account.c) and process.c, which answers. */
#ifndef HELPER_INTERNAL_H
#define HELPER_INTERNAL_H

#include <stdint.h>

#include "helper/helper.h"

/* One helper for short questions, one for questions that may take long, and one for questions that do take long. */
enum {
	HELPER_WORKER_SHORT,
	HELPER_WORKER_LONG,
	HELPER_WORKER_SLOW,
	HELPER_WORKERS,
};

#define HELPER_SAID_MAX (64 * 1024)

/* Header of a question and of an answer; the bytes follow. */
struct helper_head {
	uint32_t service; /* index in the table of helper_start(); of a question only */
	uint32_t size;
	/*
	 * In an answer: what the service returned, and the bytes of log behind the answer's own; then, in nanoseconds,
	 * how long the helper has run and has waited for a CPU so far, and how long this question made it wait for
	 * something else.
	 */
	int32_t result;
	uint32_t said, pad;
	uint64_t cpu_ns, queued_ns, blocked_ns;
};

/*
 * Memory shared with the helpers: each notes what it is opening. It is not trusted: only copied, and cleaned when it is
 * shown.
 */
#define HELPER_NOTE_MAX 4096
/*
 * Slots for notes. A helper keeps its slot when its worker changes, so there is one more than workers: the next helper
 * is made before the former one has ended.
 */
#define HELPER_SLOTS (HELPER_WORKERS + 1)
struct helper_notes {
	char text[HELPER_SLOTS][HELPER_NOTE_MAX];
};

/*
 * Runs the forkserver: for each byte that it receives, the number of a slot, it forks a helper. It replies with one
 * byte, which carries the helper's socket and pidfd, or nothing when it could not make one.
 */
void helper_forkserver_main(int fd, struct helper_notes *notes, const struct helper_services *services, void *state)
	__attribute__((noreturn));

/*
 * A helper that has used this many seconds of CPU time gets no further question; the kernel kills it at twice as many.
 */
#define HELPER_CPU_S 30

/* forkserver.c: the process that makes helpers, as the asking process uses it. */

/* Forks the forkserver. As helper_start(). Returns 0 or negative errno. */
int helper_forkserver_start(const struct helper_services *services, void *state);
/* Returns the index in the table of helper_forkserver_start(), or -ENOSYS. */
int helper_forkserver_index_of(helper_service *service);
void helper_forkserver_stop(void);
bool helper_forkserver_is_on(void);
/*
 * Has a helper made. fds: its socket and its pidfd; *slot: the slot of its notes. Returns 0, -ETIMEDOUT when the
 * forkserver does not answer, which is said, -EINTR when a signal that ends a run is pending, or another negative
 * errno. The helper that was asked for is that of the next call then.
 */
int helper_forkserver_get_process(int fds[2], unsigned *slot);
/* Frees the slot of a helper that has ended. */
void helper_forkserver_free_slot(unsigned slot);
/*
 * CLOCK_MONOTONIC seconds of the first failure to make a helper since the last success; 0: the last attempt succeeded.
 */
double helper_forkserver_failing_since(void);
/* What the helper of the slot is opening: untrusted text, maybe not terminated within HELPER_NOTE_MAX bytes. */
const char *helper_forkserver_note(unsigned slot);

/* worker.c: one helper and the question that it works on. */

struct helper_worker {
	int fd, pidfd; /* -1: no helper */
	unsigned slot;
	bool busy;
	struct helper_subject subject;
	helper_service *service;
	double begin, answered; /* CLOCK_MONOTONIC seconds; answered: 0 before */
	pid_t pid;              /* of the helper; 0: not known */
	struct helper_head head;
	size_t have; /* bytes received, of head and bytes */
	char *bytes;
	uint64_t cpu_ns, queued_ns; /* the helper's, as of its last answer */
	double known;               /* when that was, or when the helper was made */
};

/* Kills the helper, if any, and frees the worker. */
void helper_worker_drop(struct helper_worker *worker);
/* Makes a helper if the worker has none. Returns 0 or negative errno. */
int helper_worker_need_process(struct helper_worker *worker);
/* Sends a question. Returns 0 or negative errno. */
int helper_worker_post(struct helper_worker *worker, helper_service *service, struct helper_subject subject,
		       const void *question, size_t size);
/* Receives what has arrived of the answer. Returns 1 when it is complete, 0 before, or negative errno. */
int helper_worker_pump(struct helper_worker *worker);
/* Interval in seconds between checks for pending signals. */
#define HELPER_SLICE_S 0.05
/* As helper_worker_pump(), but waits until the deadline, in CLOCK_MONOTONIC seconds; also returns -EINTR. */
int helper_worker_wait(struct helper_worker *worker, double deadline);
/*
 * Seconds that the question has taken. Time for which the helper waited for a CPU is left out where the kernel tells it
 * (CONFIG_SCHED_INFO): a busy machine is not a reason to leave a process out.
 */
double helper_worker_spent_s(const struct helper_worker *worker);
/*
 * Charge the process that the question is about: with the seconds that the question took, and with the time for which
 * the asking process was blocked.
 */
void helper_worker_charge(const struct helper_worker *worker, double took);
void helper_worker_charge_blocked(const struct helper_worker *worker);
/* Copies the complete answer, prints the helper's messages and frees the worker. Returns what the service returned. */
int helper_worker_take(struct helper_worker *worker, void *answer, size_t room, size_t *size);
/* Gives up the question and kills the helper. waited_for: the asking process was blocked meanwhile. */
void helper_worker_give_up(struct helper_worker *worker, bool waited_for);
/* Frees the worker after a complete answer; its helper waits for the next question. */
void helper_worker_clear(struct helper_worker *worker);
/* Discards the question; its answer is not wanted any more. */
void helper_worker_discard(struct helper_worker *worker);

/* account.c: what questions have cost. */

/* Charges the time in seconds that a question about the process took. */
void helper_charge_used(pid_t pid, double spent_s);
/*
 * Charges the time in seconds for which the asking process waited for memory, a file, or an answer that did not come.
 */
void helper_charge_blocked(pid_t pid, double blocked_s);
/* Charges a question about the process that had no answer in HELPER_SLOW_S seconds or made the helper end. */
void helper_charge_timeout(pid_t pid);
/* Returns whether the process or its user has cost too much lately. */
bool helper_is_given_up(pid_t pid);
/* Makes questions about the process wait for the slow worker from now on. */
void helper_displace(pid_t pid);
bool helper_is_displaced(pid_t pid);
void helper_accounts_free(void);

#endif
