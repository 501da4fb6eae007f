// SPDX-License-Identifier: Apache-2.0
/* Shared by foreign.c, which asks, and foreign_helper.c, which answers. */
#ifndef FOREIGN_INTERNAL_H
#define FOREIGN_INTERNAL_H

#include <stdint.h>

#include "foreign/foreign.h"

/* One helper for short questions, one for those that may take long, one for those that do. */
enum foreign_lane {
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

/* foreign_account.c */

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
