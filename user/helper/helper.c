// SPDX-License-Identifier: Apache-2.0
/* The asking side: chooses the worker for a question and limits how long it may work on it. */
#include <errno.h>

#include "helper/internal.h"
#include "base/clock.h"

/* Seconds after which a question moves to the slow worker, if that is free, and otherwise has to be asked again. */
#define LONG_S 0.25
/* Seconds after which an answer is dropped that is not fetched, because its process has ended. */
#define UNCLAIMED_S 2.0
/* Seconds for which questions may be repeated while no helper can be made. */
#define NO_HELPER_S 2.0

static struct helper_worker workers[HELPER_WORKERS];
static unsigned long failed_calls;
static int last_failure;

int helper_start(const struct helper_services *services, void *state)
{
	int err;

	for (size_t i = 0; i < HELPER_WORKERS; i++)
		workers[i] = (struct helper_worker){.fd = -1, .pidfd = -1};
	err = helper_forkserver_start(services, state);
	/*
	 * Made early, so that the helper is there when the first process is to be analysed; if this fails, it is tried
	 * again then.
	 */
	if (!err)
		helper_worker_need_process(&workers[HELPER_WORKER_LONG]);
	return err;
}

void helper_stop(void)
{
	if (!helper_forkserver_is_on())
		return;
	for (size_t i = 0; i < HELPER_WORKERS; i++)
		helper_worker_drop(&workers[i]);
	helper_forkserver_stop();
	helper_accounts_free();
}

static int call(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s)
{
	struct helper_worker *worker = &workers[HELPER_WORKER_LONG];
	int ret;

	*size = 0;
	/* The long worker's helper comes first: it has parsed files that the other would have to parse again. */
	if (worker->busy)
		worker = &workers[HELPER_WORKER_SHORT];
	if (!helper_forkserver_is_on())
		return -ENOTCONN;
	if (helper_is_given_up(subject.pid))
		return -EBUSY;
	ret = helper_worker_post(worker, service, subject, question, question_size);
	if (ret)
		return ret;
	ret = helper_worker_wait(worker, worker->begin + patience_s);
	while (!ret && helper_worker_spent_s(worker) < patience_s)
		ret = helper_worker_wait(worker, clock_s(CLOCK_MONOTONIC) + HELPER_SLICE_S);
	if (ret == 1) {
		helper_worker_charge_blocked(worker);
		return helper_worker_take(worker, answer, room, size);
	}
	if (ret == -EINTR)
		helper_worker_drop(worker);
	else
		helper_worker_give_up(worker, !ret);
	return ret ?: -ETIMEDOUT;
}

int helper_call(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s)
{
	int ret = call(service, subject, question, question_size, answer, room, size, patience_s);

	if (helper_has_no_answer(ret)) {
		failed_calls++;
		last_failure = ret;
	}
	return ret;
}

int helper_last_failure(void)
{
	return last_failure;
}

unsigned long helper_failed_calls(void)
{
	return failed_calls;
}

/* Returns the worker that works on a question of that kind about the process, or NULL. */
static struct helper_worker *worker_on(helper_service *service, struct helper_subject subject)
{
	for (size_t i = HELPER_WORKER_LONG; i < HELPER_WORKERS; i++) {
		struct helper_worker *worker = &workers[i];

		if (worker->busy && worker->service == service && worker->subject.pid == subject.pid)
			return worker;
	}
	return NULL;
}

bool helper_has_answer(struct helper_subject *subject)
{
	for (size_t i = HELPER_WORKER_LONG; i < HELPER_WORKERS; i++) {
		struct helper_worker *worker = &workers[i];

		/* With an error, too: the next helper_ask() then returns it. */
		if (worker->busy && helper_worker_pump(worker)) {
			*subject = worker->subject;
			return true;
		}
	}
	return false;
}

void helper_discard(struct helper_subject subject)
{
	for (size_t i = HELPER_WORKER_LONG; i < HELPER_WORKERS; i++) {
		struct helper_worker *worker = &workers[i];

		if (worker->busy && worker->subject.pid == subject.pid && worker->subject.life == subject.life)
			helper_worker_discard(worker);
	}
}

/*
 * Makes room for other questions: moves or drops those that take long or have failed. own: the caller's worker, or
 * NULL.
 */
static void make_room(const struct helper_worker *own)
{
	struct helper_worker *worker = &workers[HELPER_WORKER_LONG], *slow = &workers[HELPER_WORKER_SLOW];
	double now = clock_s(CLOCK_MONOTONIC);

	if (slow->busy && now - slow->begin > HELPER_SLOW_S && helper_worker_spent_s(slow) > HELPER_SLOW_S &&
	    !helper_worker_pump(slow))
		helper_worker_give_up(slow, false);
	for (size_t i = HELPER_WORKER_LONG; i < HELPER_WORKERS; i++) {
		struct helper_worker *done = &workers[i];
		int ret = done->busy ? helper_worker_pump(done) : 0;

		if (ret == 1 && now - done->answered > UNCLAIMED_S)
			helper_worker_clear(done);
		else if (ret < 0 && done != own)
			helper_worker_drop(done);
	}
	if (!worker->busy || helper_worker_pump(worker) || now - worker->begin <= LONG_S ||
	    helper_worker_spent_s(worker) <= LONG_S)
		return;
	if (!slow->busy) {
		helper_worker_drop(slow);
		*slow = *worker;
		*worker = (struct helper_worker){.fd = -1, .pidfd = -1};
		return;
	}
	helper_displace(worker->subject.pid);
	helper_worker_charge(worker, helper_worker_spent_s(worker));
	helper_worker_drop(worker);
}

/* Returns the worker for such a question if it is free, otherwise NULL. */
static struct helper_worker *free_worker(helper_service *service, struct helper_subject subject)
{
	struct helper_worker *slow = &workers[HELPER_WORKER_SLOW];
	struct helper_worker *worker = helper_is_displaced(subject.pid) ? slow : &workers[HELPER_WORKER_LONG];

	/* What took it long may have more answers, which are there by now. */
	if (!slow->busy && slow->fd >= 0 && slow->service == service && slow->subject.pid == subject.pid &&
	    slow->subject.life == subject.life)
		worker = slow;
	return worker->busy ? NULL : worker;
}

int helper_ask(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
	       void *answer, size_t room, size_t *size, double slice_s)
{
	struct helper_worker *worker;
	bool asked;
	int ret = 0;

	*size = 0;
	if (!helper_forkserver_is_on())
		return -ENOTCONN;
	worker = worker_on(service, subject);
	asked = worker;
	make_room(worker);
	worker = worker_on(service, subject);
	if (worker && worker->subject.life != subject.life) {
		helper_worker_discard(worker);
		worker = NULL;
	}
	if (!worker) {
		if (helper_is_given_up(subject.pid))
			return asked ? -ETIMEDOUT : -EBUSY;
		worker = free_worker(service, subject);
		if (!worker)
			return -EINPROGRESS;
		ret = helper_worker_post(worker, service, subject, question, question_size);
		if (ret && helper_forkserver_failing_since() > 0 &&
		    clock_s(CLOCK_MONOTONIC) - helper_forkserver_failing_since() < NO_HELPER_S)
			return -EINPROGRESS;
		if (ret)
			return ret;
		ret = helper_worker_wait(worker, worker->begin + slice_s);
	}
	ret = ret ?: helper_worker_pump(worker);
	if (ret == 1)
		return helper_worker_take(worker, answer, room, size);
	if (!ret || ret == -EINTR)
		return -EINPROGRESS;
	helper_worker_give_up(worker, false);
	return ret;
}
