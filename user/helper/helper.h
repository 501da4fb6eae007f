// SPDX-License-Identifier: Apache-2.0
/*
 * Helper processes that open and parse what others wrote. A question goes to a helper as bytes, and the answer comes
 * back as bytes. A helper can be killed: a file system that does not answer, a file crafted to be slow, or a parser
 * that crashes costs one answer and nothing else.
 */
#ifndef HELPER_H
#define HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most bytes of a question, and of an answer: the largest holds a source of 1 MiB and what is said about it. */
#define HELPER_QUESTION_MAX (16 * 1024)
#define HELPER_ANSWER_MAX   ((1 << 20) + 4096)

/*
 * A kind of question: a function that runs in the helper. It reads the question, writes at most HELPER_ANSWER_MAX
 * bytes to answer and their number to *size. Returns 0, or a negative errno, which the asking function returns. state:
 * the helper's copy of what helper_start() was given. A question is not trusted, either: whoever has taken over the
 * asking process can write anything into it.
 */
typedef int helper_service(void *state, const void *question, size_t question_size, void *answer, size_t *size);

/*
 * All kinds of questions. A question names its kind by the index in this table, of which each helper has a copy: an
 * address would let whoever writes to a helper's socket run any code of the helper. It is constant, and outlives the
 * helpers.
 */
struct helper_services {
	helper_service *const *items;
	uint32_t count;
};

/* The process that a question is about: the cost of the question is charged to it, and to its user. */
struct helper_subject {
	pid_t pid; /* 0: no particular process */
	/* Number of the program that the PID runs, never used twice. Answers about another program are thrown away. */
	uint64_t life;
};

/* Has helpers keep this descriptor of the caller's, by which services read. To be called before helper_start(). */
void helper_keep_open(int fd);

/*
 * Forks the process that makes helpers. To be called before anything is opened, by a process with one thread. state:
 * what services remember between questions, or NULL; each helper begins with the state as it is now, and the caller may
 * free it afterwards. Returns 0 or negative errno.
 */
int helper_start(const struct helper_services *services, void *state);
/* Kills the helpers and their forkserver. May be called at any time, also twice. */
void helper_stop(void);

/*
 * Asks and waits for the answer, at most patience_s seconds. Returns what the service returns, or -ETIMEDOUT when it
 * did not answer, -ECONNRESET when it crashed, -EINTR when a signal that ends a run is pending, -ENOTCONN before
 * helper_start() and where no helper can be made, -ENOSYS for a kind that its table does not have, -EBUSY at once when
 * questions about the process or its user took too long within the last minute, or another negative errno.
 */
int helper_call(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s);

/*
 * Returns whether this error of helper_call() or helper_ask() says that there was no answer: nothing is known of what
 * was asked. A service cannot return these; all others are its own, and facts. -EPROTO is also the error of a caller
 * that got an answer which no service gives.
 */
bool helper_has_no_answer(int err);
/* Returns why there was no answer, as a part of a sentence; of another error its usual text. */
const char *helper_describe_error(int err);
/* Number of calls of helper_call() that had no answer, those included that were refused at once. */
unsigned long helper_failed_calls(void);
/* Returns the error of the last one of them; 0: each call has had its answer. */
int helper_last_failure(void);

/*
 * As helper_call(), for questions that may take long: waits at most slice_s seconds and then returns -EINPROGRESS.
 * Repeat the same question until the answer is there. One question is worked on at a time, besides one slow question;
 * others wait. Each is given HELPER_SLOW_S seconds in the end.
 */
int helper_ask(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
	       void *answer, size_t room, size_t *size, double slice_s);
#define HELPER_SLOW_S 5.0

/* Returns whether a question of helper_ask() has an answer that was not taken yet; *subject is then its process. */
bool helper_has_answer(struct helper_subject *subject);
/* Discards questions of helper_ask() about the subject, which will not be repeated. */
void helper_discard(struct helper_subject subject);

/* Returns whether the process that makes helpers has ended: soon nothing will be answered any more. */
bool helper_is_gone(void);

/* Returns whether a signal that ends a run is pending, as signals_of_end() has them. */
bool helper_is_interrupted(void);
/* From now on SIGHUP does not end a run. */
void helper_go_on_at_hangup(void);

/* Seconds that questions about the user's processes took lately: the user with the least comes first. */
double helper_user_cost_s(uid_t uid);
/* Returns whether questions about any user's processes were charged. */
bool helper_any_user_cost(void);

/*
 * In a helper: makes it end when its forkserver ends. A change of the helper's user undoes that: to be called again
 * after it.
 */
void helper_tie_to_forkserver(void);

/* In a helper: the CPU time that it has taken. */
uint64_t helper_own_cpu_ns(void);

/* Number of questions without an answer, for the account. */
unsigned long helper_unanswered(void);

/* CPU time in seconds that helpers took for their answers. */
double helper_cpu_s(void);

/* What the last helper without an answer was opening (activity.h), "" for nothing. The text is not trusted. */
const char *helper_stuck_at(void);

#endif
