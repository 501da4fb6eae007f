// SPDX-License-Identifier: Apache-2.0
/* The asking side: chooses the lane for a question and limits how long the question may stay there. */
#include <errno.h>

#include "foreign/internal.h"
#include "base/clock.h"

/* Seconds after which a question moves to the slow lane, if that is free, and otherwise has to be asked again. */
#define LONG_S 0.25
/* Seconds after which an answer is dropped that is not fetched, because its process has ended. */
#define UNCLAIMED_S 2.0
/* Seconds for which questions may be repeated while no helper can be made. */
#define NO_HELPER_S 2.0

static struct foreign_lane lanes[FOREIGN_LANES];
static unsigned long calls_in_vain;
static int last_in_vain;

int foreign_start(const struct foreign_services *services, void *state)
{
	int err;

	for (size_t i = 0; i < FOREIGN_LANES; i++)
		lanes[i] = (struct foreign_lane){.fd = -1, .pidfd = -1};
	err = foreign_maker_start(services, state);
	/*
	 * Made early, so that the helper is there when the first process is to be analysed; if this fails, it is tried
	 * again then.
	 */
	if (!err)
		foreign_lane_need_helper(&lanes[FOREIGN_LANE_LONG]);
	return err;
}

void foreign_stop(void)
{
	if (!foreign_maker_is_on())
		return;
	for (size_t i = 0; i < FOREIGN_LANES; i++)
		foreign_lane_drop(&lanes[i]);
	foreign_maker_stop();
	foreign_accounts_free();
}

static int call(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s)
{
	struct foreign_lane *lane = &lanes[FOREIGN_LANE_LONG];
	int ret;

	*size = 0;
	/* The long lane's helper comes first: it has parsed files that the other would have to parse again. */
	if (lane->busy)
		lane = &lanes[FOREIGN_LANE_SHORT];
	if (!foreign_maker_is_on())
		return -ENOTCONN;
	if (foreign_is_given_up(subject.pid))
		return -EBUSY;
	ret = foreign_lane_post(lane, service, subject, question, question_size);
	if (ret)
		return ret;
	ret = foreign_lane_wait(lane, lane->begin + patience_s);
	while (!ret && foreign_lane_spent_s(lane) < patience_s)
		ret = foreign_lane_wait(lane, clock_s(CLOCK_MONOTONIC) + FOREIGN_SLICE_S);
	if (ret == 1) {
		foreign_lane_charge_blocked(lane);
		return foreign_lane_take(lane, answer, room, size);
	}
	if (ret == -EINTR)
		foreign_lane_drop(lane);
	else
		foreign_lane_give_up(lane, !ret);
	return ret ?: -ETIMEDOUT;
}

int foreign_call(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		 void *answer, size_t room, size_t *size, double patience_s)
{
	int ret = call(service, subject, question, question_size, answer, room, size, patience_s);

	if (foreign_has_no_answer(ret)) {
		calls_in_vain++;
		last_in_vain = ret;
	}
	return ret;
}

int foreign_last_in_vain(void)
{
	return last_in_vain;
}

unsigned long foreign_calls_in_vain(void)
{
	return calls_in_vain;
}

/* Returns the lane that works on a question of that kind about the process, or NULL. */
static struct foreign_lane *lane_of(foreign_service *service, struct foreign_subject subject)
{
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct foreign_lane *lane = &lanes[i];

		if (lane->busy && lane->service == service && lane->subject.pid == subject.pid)
			return lane;
	}
	return NULL;
}

bool foreign_answered(struct foreign_subject *subject)
{
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct foreign_lane *lane = &lanes[i];

		/* With an error, too: the next foreign_ask() then returns it. */
		if (lane->busy && foreign_lane_pump(lane)) {
			*subject = lane->subject;
			return true;
		}
	}
	return false;
}

void foreign_discard(struct foreign_subject subject)
{
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct foreign_lane *lane = &lanes[i];

		if (lane->busy && lane->subject.pid == subject.pid && lane->subject.life == subject.life)
			foreign_lane_discard(lane);
	}
}

/*
 * Makes room for other questions: moves or drops those that take long or have failed. own: the caller's lane, or NULL.
 */
static void make_room(const struct foreign_lane *own)
{
	struct foreign_lane *lane = &lanes[FOREIGN_LANE_LONG], *slow = &lanes[FOREIGN_LANE_SLOW];
	double now = clock_s(CLOCK_MONOTONIC);

	if (slow->busy && now - slow->begin > FOREIGN_SLOW_S && foreign_lane_spent_s(slow) > FOREIGN_SLOW_S &&
	    !foreign_lane_pump(slow))
		foreign_lane_give_up(slow, false);
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct foreign_lane *done = &lanes[i];
		int ret = done->busy ? foreign_lane_pump(done) : 0;

		if (ret == 1 && now - done->answered > UNCLAIMED_S)
			foreign_lane_clear(done);
		else if (ret < 0 && done != own)
			foreign_lane_drop(done);
	}
	if (!lane->busy || foreign_lane_pump(lane) || now - lane->begin <= LONG_S ||
	    foreign_lane_spent_s(lane) <= LONG_S)
		return;
	if (!slow->busy) {
		foreign_lane_drop(slow);
		*slow = *lane;
		*lane = (struct foreign_lane){.fd = -1, .pidfd = -1};
		return;
	}
	foreign_displace(lane->subject.pid);
	foreign_lane_charge(lane, foreign_lane_spent_s(lane));
	foreign_lane_drop(lane);
}

/* Returns the lane for questions about the process if it is free, otherwise NULL. */
static struct foreign_lane *free_lane(pid_t pid)
{
	struct foreign_lane *lane = &lanes[foreign_is_displaced(pid) ? FOREIGN_LANE_SLOW : FOREIGN_LANE_LONG];

	return lane->busy ? NULL : lane;
}

int foreign_ask(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double slice_s)
{
	struct foreign_lane *lane;
	bool asked;
	int ret = 0;

	*size = 0;
	if (!foreign_maker_is_on())
		return -ENOTCONN;
	lane = lane_of(service, subject);
	asked = lane;
	make_room(lane);
	lane = lane_of(service, subject);
	if (lane && lane->subject.life != subject.life) {
		foreign_lane_discard(lane);
		lane = NULL;
	}
	if (!lane) {
		if (foreign_is_given_up(subject.pid))
			return asked ? -ETIMEDOUT : -EBUSY;
		lane = free_lane(subject.pid);
		if (!lane)
			return -EINPROGRESS;
		ret = foreign_lane_post(lane, service, subject, question, question_size);
		if (ret && foreign_maker_failing_since() > 0 &&
		    clock_s(CLOCK_MONOTONIC) - foreign_maker_failing_since() < NO_HELPER_S)
			return -EINPROGRESS;
		if (ret)
			return ret;
		ret = foreign_lane_wait(lane, lane->begin + slice_s);
	}
	ret = ret ?: foreign_lane_pump(lane);
	if (ret == 1)
		return foreign_lane_take(lane, answer, room, size);
	if (!ret || ret == -EINTR)
		return -EINPROGRESS;
	foreign_lane_give_up(lane, false);
	return ret;
}
