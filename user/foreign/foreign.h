// SPDX-License-Identifier: Apache-2.0
/*
 * Helper processes that open and parse what others wrote. A question goes to a helper as bytes, and the answer comes
 * back as bytes. A helper can be killed: a file system that does not answer, a file crafted to be slow, or a parser
 * that crashes costs one answer and nothing else.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most bytes of a question, and of an answer: the largest holds a source of 1 MiB and what is said about it. */
#define FOREIGN_QUESTION_MAX (16 * 1024)
#define FOREIGN_ANSWER_MAX   ((1 << 20) + 4096)

/*
 * A kind of question: a function that runs in the helper. It reads the question, writes at most FOREIGN_ANSWER_MAX
 * bytes to answer and their number to *size. Returns 0, or a negative errno, which the asking function returns. state:
 * the helper's copy of what foreign_start() was given. A question is not trusted, either: whoever has taken over the
 * asking process can write anything into it.
 */
typedef int foreign_service(void *state, const void *question, size_t question_size, void *answer, size_t *size);

/*
 * All kinds of questions. A question names its kind by the index in this table, of which each helper has a copy: an
 * address would let whoever writes to a helper's socket run any code of the helper. It is constant, and outlives the
 * helpers.
 */
struct foreign_services {
	foreign_service *const *items;
	uint32_t count;
};

/* The process that a question is about: the cost of the question is charged to it, and to its user. */
struct foreign_subject {
	pid_t pid; /* 0: no particular process */
	/* Number of the program that the PID runs, never used twice. Answers about another program are thrown away. */
	uint64_t life;
};

/* Has helpers keep this descriptor of the caller's, by which services read. To be called before foreign_start(). */
void foreign_keep_open(int fd);

/*
 * Forks the process that makes helpers. To be called before anything is opened, by a process with one thread. state:
 * what services remember between questions, or NULL; each helper begins with the state as it is now, and the caller may
 * free it afterwards. Returns 0 or negative errno.
 */
int foreign_start(const struct foreign_services *services, void *state);
/* Kills the helpers and their maker. May be called at any time, also twice. */
void foreign_stop(void);

/*
 * Asks and waits for the answer, at most patience_s seconds. Returns what the service returns, or -ETIMEDOUT when it
 * did not answer, -ECONNRESET when it crashed, -EINTR when a signal that ends a run is pending, -ENOTCONN before
 * foreign_start() and where no helper can be made, -ENOSYS for a kind that its table does not have, -EBUSY at once when
 * questions about the process or its user took too long within the last minute, or another negative errno.
 */
int foreign_call(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		 void *answer, size_t room, size_t *size, double patience_s);

/*
 * Returns whether this error of foreign_call() or foreign_ask() says that there was no answer: nothing is known of what
 * was asked. A service cannot return these; all others are its own, and facts. -EPROTO is also the error of a caller
 * that got an answer which no service gives.
 */
bool foreign_has_no_answer(int err);
/* Returns why there was no answer, as a part of a sentence; of another error its usual text. */
const char *foreign_describe(int err);
/* Number of calls of foreign_call() that had no answer, those included that were refused at once. */
unsigned long foreign_calls_in_vain(void);
/* Returns the error of the last one of them; 0: each call has had its answer. */
int foreign_last_in_vain(void);

/*
 * As foreign_call(), for questions that may take long: waits at most slice_s seconds and then returns -EINPROGRESS.
 * Repeat the same question until the answer is there. One question is worked on at a time, besides one slow question;
 * others wait. Each is given FOREIGN_SLOW_S seconds in the end.
 */
int foreign_ask(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double slice_s);
#define FOREIGN_SLOW_S 5.0

/* Returns whether a question of foreign_ask() has an answer that was not taken yet; *subject is then its process. */
bool foreign_answered(struct foreign_subject *subject);
/* Discards questions of foreign_ask() about the subject, which will not be repeated. */
void foreign_discard(struct foreign_subject subject);

/* Returns whether a signal that ends a run is pending. */
bool foreign_is_interrupted(void);

/* Seconds that questions about the user's processes took lately: the user with the least comes first. */
double foreign_used(uid_t uid);
/* Returns whether questions about any user's processes were charged. */
bool foreign_any_used(void);

/*
 * In a helper: makes it end when its maker ends. A change of the helper's user undoes that: to be called again after
 * it.
 */
void foreign_tie_helper(void);

/* Number of questions without an answer, for the account. */
unsigned long foreign_unanswered(void);

/* CPU time in seconds that helpers took for their answers. */
double foreign_cpu_s(void);

/* What the last helper without an answer was opening (activity.h), "" for nothing. The text is not trusted. */
const char *foreign_stuck_at(void);

#endif
