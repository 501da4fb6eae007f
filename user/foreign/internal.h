// SPDX-License-Identifier: Apache-2.0
/* Shared by the side that asks (foreign.c, lane.c, maker.c, account.c) and helper.c, which answers. */
#ifndef FOREIGN_INTERNAL_H
#define FOREIGN_INTERNAL_H

#include <stdint.h>

#include "foreign/foreign.h"

/* One helper for short questions, one for those that may take long, one for those that do. */
enum {
	FOREIGN_LANE_SHORT,
	FOREIGN_LANE_LONG,
	FOREIGN_LANE_SLOW,
	FOREIGN_LANES,
};

#define FOREIGN_SAID_MAX (64 * 1024)

/* Before the bytes of a question and of an answer. */
struct foreign_head {
	foreign_service *service;
	uint32_t size;
	/*
	 * Of an answer: what the service returned, bytes of log behind its own, for how long the helper has run and
	 * has waited for a CPU so far, and how long it waited for something else this time.
	 */
	int32_t result;
	uint32_t said, pad;
	uint64_t cpu_ns, queued_ns, blocked_ns;
};

/* Memory that both sides see: what each helper is at. It is foreign: only ever copied, and cleaned when it is shown. */
#define FOREIGN_NOTE_MAX 4096
/* A helper keeps its slot when its lane changes: one more than lanes, for the next is made before one is gone. */
#define FOREIGN_SLOTS (FOREIGN_LANES + 1)
struct foreign_notes {
	char text[FOREIGN_SLOTS][FOREIGN_NOTE_MAX];
};

/*
 * The maker's life: forks a helper for each byte that comes, the slot's number; sends one byte with its socket and its
 * pidfd, or without where it could make none.
 */
void foreign_make_helpers(int fd, struct foreign_notes *notes) __attribute__((noreturn));

/* A helper that has used so many seconds of CPU time gets no further question, and is killed by the kernel later. */
#define FOREIGN_HELPER_CPU_S 30

/* maker.c: the process that makes helpers, seen from the one that asks. */

/* Returns 0 or negative errno. */
int foreign_maker_start(void);
void foreign_maker_stop(void);
bool foreign_maker_is_on(void);
/* Has a helper made: its socket and its pidfd, and the slot that it notes in what it is at. 0 or negative errno. */
int foreign_maker_get_helper(int fds[2], unsigned *slot);
/* The helper of that slot is gone. */
void foreign_maker_free_slot(unsigned slot);
/* CLOCK_MONOTONIC seconds since when no helper could be made; 0: the last one could. */
double foreign_maker_failing_since(void);
/* What the helper of the slot is at: foreign text, which is not ended for sure in FOREIGN_NOTE_MAX bytes. */
const char *foreign_maker_note(unsigned slot);

/* lane.c: one helper and the question that it is at. */

struct foreign_lane {
	int fd, pidfd; /* -1: no helper */
	unsigned slot;
	bool busy;
	struct foreign_subject subject;
	foreign_service *service;
	double begin, answered; /* when; answered: 0 before */
	pid_t pid;              /* of the helper; 0: not known */
	struct foreign_head head;
	size_t have; /* of head and bytes */
	char *bytes;
	uint64_t cpu_ns, queued_ns; /* of the helper, as it last told */
	double known;               /* when that was, or when it was made */
};

/* Kills the helper, if there is one. The lane is free again. */
void foreign_lane_drop(struct foreign_lane *lane);
/* Makes a helper where there is none. Returns 0 or negative errno. */
int foreign_lane_need_helper(struct foreign_lane *lane);
/* Sends a question. Returns 0 or negative errno. */
int foreign_lane_post(struct foreign_lane *lane, foreign_service *service, struct foreign_subject subject,
		      const void *question, size_t size);
/* Takes what has come of the answer. Returns 1 with the whole of it, 0 before, or negative errno. */
int foreign_lane_pump(struct foreign_lane *lane);
/* Interval between looks at pending signals. */
#define FOREIGN_SLICE_S 0.05
/* The same, waiting until CLOCK_MONOTONIC seconds; also -EINTR. */
int foreign_lane_wait(struct foreign_lane *lane, double deadline);
/*
 * Seconds that the question has taken, without those for which the helper waited for a CPU, where the kernel tells
 * them (CONFIG_SCHED_INFO): a busy machine is no reason to leave a process out.
 */
double foreign_lane_spent_s(const struct foreign_lane *lane);
/* Charge the one who is asked about: with what the question took, and with what the one who asked was blocked. */
void foreign_lane_charge(const struct foreign_lane *lane, double took);
void foreign_lane_charge_blocked(const struct foreign_lane *lane);
/* Hands on the whole answer, and what the helper has said. Returns what the service did. The lane is free again. */
int foreign_lane_take(struct foreign_lane *lane, void *answer, size_t room, size_t *size);
/* There will be no answer: kills the helper. waited_for: the one who asked was blocked meanwhile. */
void foreign_lane_give_up(struct foreign_lane *lane, bool waited_for);
/* The answer is there, or nobody wants it: the lane is free again, its helper waits for the next question. */
void foreign_lane_clear(struct foreign_lane *lane);
/* Nobody wants the answer any more. */
void foreign_lane_discard(struct foreign_lane *lane);

/* account.c */

/* A question about the process took so long. */
void foreign_charge_used(pid_t pid, double spent_s);
/* The one who asked waited so long for memory or a file, or for nothing. */
void foreign_charge_blocked(pid_t pid, double blocked_s);
/* A question about the process had no answer in FOREIGN_SLOW_S, or cost the helper its life. */
void foreign_charge_vain(pid_t pid);
/* Has it, or has its user, cost too much lately? */
bool foreign_is_given_up(pid_t pid);
/* From now on it has to wait for the slow lane. */
void foreign_displace(pid_t pid);
bool foreign_is_displaced(pid_t pid);
void foreign_accounts_free(void);

#endif
