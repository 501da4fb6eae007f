// SPDX-License-Identifier: Apache-2.0
/* Shared by the side that asks (foreign.c, lane.c, maker.c, account.c) and helper.c, which answers. */
#ifndef FOREIGN_INTERNAL_H
#define FOREIGN_INTERNAL_H

#include <stdint.h>

#include "foreign/foreign.h"

/* One helper for short questions, one for questions that may take long, and one for questions that do take long. */
enum {
	FOREIGN_LANE_SHORT,
	FOREIGN_LANE_LONG,
	FOREIGN_LANE_SLOW,
	FOREIGN_LANES,
};

#define FOREIGN_SAID_MAX (64 * 1024)

/* Header of a question and of an answer; the bytes follow. */
struct foreign_head {
	uint32_t service; /* index in the table of foreign_start(); of a question only */
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
#define FOREIGN_NOTE_MAX 4096
/*
 * Slots for notes. A helper keeps its slot when its lane changes, so there is one more than lanes: the next helper is
 * made before the former one has ended.
 */
#define FOREIGN_SLOTS (FOREIGN_LANES + 1)
struct foreign_notes {
	char text[FOREIGN_SLOTS][FOREIGN_NOTE_MAX];
};

/*
 * Runs the maker: for each byte that it receives, the number of a slot, it forks a helper. It replies with one byte,
 * which carries the helper's socket and pidfd, or nothing when it could not make one.
 */
void foreign_make_helpers(int fd, struct foreign_notes *notes, const struct foreign_services *services, void *state)
	__attribute__((noreturn));

/*
 * A helper that has used this many seconds of CPU time gets no further question; the kernel kills it at twice as many.
 */
#define FOREIGN_HELPER_CPU_S 30

/* maker.c: the process that makes helpers, as the asking process uses it. */

/* Forks the maker. As foreign_start(). Returns 0 or negative errno. */
int foreign_maker_start(const struct foreign_services *services, void *state);
/* Returns the index in the table of foreign_maker_start(), or -ENOSYS. */
int foreign_maker_index_of(foreign_service *service);
void foreign_maker_stop(void);
bool foreign_maker_is_on(void);
/* Has a helper made. fds: its socket and its pidfd; *slot: the slot of its notes. Returns 0 or negative errno. */
int foreign_maker_get_helper(int fds[2], unsigned *slot);
/* Frees the slot of a helper that has ended. */
void foreign_maker_free_slot(unsigned slot);
/*
 * CLOCK_MONOTONIC seconds of the first failure to make a helper since the last success; 0: the last attempt succeeded.
 */
double foreign_maker_failing_since(void);
/* What the helper of the slot is opening: untrusted text, maybe not terminated within FOREIGN_NOTE_MAX bytes. */
const char *foreign_maker_note(unsigned slot);

/* lane.c: one helper and the question that it works on. */

struct foreign_lane {
	int fd, pidfd; /* -1: no helper */
	unsigned slot;
	bool busy;
	struct foreign_subject subject;
	foreign_service *service;
	double begin, answered; /* CLOCK_MONOTONIC seconds; answered: 0 before */
	pid_t pid;              /* of the helper; 0: not known */
	struct foreign_head head;
	size_t have; /* bytes received, of head and bytes */
	char *bytes;
	uint64_t cpu_ns, queued_ns; /* the helper's, as of its last answer */
	double known;               /* when that was, or when the helper was made */
};

/* Kills the helper, if any, and frees the lane. */
void foreign_lane_drop(struct foreign_lane *lane);
/* Makes a helper if the lane has none. Returns 0 or negative errno. */
int foreign_lane_need_helper(struct foreign_lane *lane);
/* Sends a question. Returns 0 or negative errno. */
int foreign_lane_post(struct foreign_lane *lane, foreign_service *service, struct foreign_subject subject,
		      const void *question, size_t size);
/* Receives what has arrived of the answer. Returns 1 when it is complete, 0 before, or negative errno. */
int foreign_lane_pump(struct foreign_lane *lane);
/* Interval in seconds between checks for pending signals. */
#define FOREIGN_SLICE_S 0.05
/* As foreign_lane_pump(), but waits until the deadline, in CLOCK_MONOTONIC seconds; also returns -EINTR. */
int foreign_lane_wait(struct foreign_lane *lane, double deadline);
/*
 * Seconds that the question has taken. Time for which the helper waited for a CPU is left out where the kernel tells it
 * (CONFIG_SCHED_INFO): a busy machine is not a reason to leave a process out.
 */
double foreign_lane_spent_s(const struct foreign_lane *lane);
/*
 * Charge the process that the question is about: with the seconds that the question took, and with the time for which
 * the asking process was blocked.
 */
void foreign_lane_charge(const struct foreign_lane *lane, double took);
void foreign_lane_charge_blocked(const struct foreign_lane *lane);
/* Copies the complete answer, prints the helper's messages and frees the lane. Returns what the service returned. */
int foreign_lane_take(struct foreign_lane *lane, void *answer, size_t room, size_t *size);
/* Gives up the question and kills the helper. waited_for: the asking process was blocked meanwhile. */
void foreign_lane_give_up(struct foreign_lane *lane, bool waited_for);
/* Frees the lane after a complete answer; its helper waits for the next question. */
void foreign_lane_clear(struct foreign_lane *lane);
/* Discards the question; its answer is not wanted any more. */
void foreign_lane_discard(struct foreign_lane *lane);

/* account.c: what questions have cost. */

/* Charges the time in seconds that a question about the process took. */
void foreign_charge_used(pid_t pid, double spent_s);
/*
 * Charges the time in seconds for which the asking process waited for memory, a file, or an answer that did not come.
 */
void foreign_charge_blocked(pid_t pid, double blocked_s);
/* Charges a question about the process that had no answer in FOREIGN_SLOW_S seconds or made the helper end. */
void foreign_charge_vain(pid_t pid);
/* Returns whether the process or its user has cost too much lately. */
bool foreign_is_given_up(pid_t pid);
/* Makes questions about the process wait for the slow lane from now on. */
void foreign_displace(pid_t pid);
bool foreign_is_displaced(pid_t pid);
void foreign_accounts_free(void);

#endif
