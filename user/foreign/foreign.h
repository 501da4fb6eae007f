// SPDX-License-Identifier: Apache-2.0
/*
 * Helper processes that open and parse what others wrote. A question goes to one of them as bytes, the answer comes
 * back as bytes. The helper can be killed: a file system that does not answer, a file made to be slow, or a parser that
 * crashes costs that answer and nothing else.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most bytes of a question, and of an answer: a source of 1 MiB and what is said of it. */
#define FOREIGN_QUESTION_MAX (16 * 1024)
#define FOREIGN_ANSWER_MAX   ((1 << 20) + 4096)

/*
 * A kind of question: a function that runs in the helper, which is a fork, so that it has the same address there. Reads
 * the question, writes at most FOREIGN_ANSWER_MAX bytes to answer and their number to *size. Returns 0, or a negative
 * errno that the one who asked gets.
 */
typedef int foreign_service(const void *question, size_t question_size, void *answer, size_t *size);

/* Who is asked about: what it costs is charged to that process, and to its user. */
struct foreign_subject {
	pid_t pid; /* 0: nobody in particular */
	/* Which program of the PID, a number that is never used again. Answers about another program are thrown away.
	 */
	uint64_t life;
};

/*
 * Forks the process that makes helpers; to be called before anything is opened, by a process of one thread. Returns 0
 * or negative errno.
 */
int foreign_start(void);
/* Kills the helpers and their maker. May be called at any time, twice. */
void foreign_stop(void);

/*
 * Asks and waits, at most patience_s seconds. Returns what the service does, or -ETIMEDOUT when it did not answer,
 * -ECONNRESET when it crashed, -EINTR when a signal that ends a run is pending, -ENOTCONN before foreign_start(), or
 * another negative errno. Who made it wait too long lately is not asked about for a minute: -EBUSY at once.
 */
int foreign_call(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		 void *answer, size_t room, size_t *size, double patience_s);

/*
 * The same for questions that may take long, without waiting longer than slice_s: -EINPROGRESS then, and the same
 * question is to be asked again, until the answer is there. One question is worked on at a time, and a slow one beside;
 * others wait. Each is given FOREIGN_SLOW_S in the end.
 */
int foreign_ask(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double slice_s);
#define FOREIGN_SLOW_S 5.0

/* Has a question of foreign_ask() an answer that was not taken yet? Then tells whom it is about. */
bool foreign_answered(struct foreign_subject *subject);
/* Nobody will ask again. */
void foreign_discard(struct foreign_subject subject);

/* Is a signal pending that ends a run? */
bool foreign_is_interrupted(void);

/* Seconds that questions about processes of a user took lately: who took least comes first. */
double foreign_used(uid_t uid);
/* Did any take long? */
bool foreign_any_used(void);

/* In a helper: ends with its maker. To be said again after a change of its user, which undoes that. */
void foreign_tie_helper(void);

/* How many questions had no answer, for the account. */
unsigned long foreign_unanswered(void);

/* CPU time that helpers took for their answers. */
double foreign_cpu_s(void);

/* What the helper that gave no answer last was opening (activity.h), "" for nothing. It is foreign text. */
const char *foreign_stuck_at(void);

#endif
