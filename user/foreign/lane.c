// SPDX-License-Identifier: Apache-2.0
/* One lane: a helper, the question that it works on, and how long that takes. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "foreign/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"

/* Least seconds that are charged: shorter questions are not worth finding out whose process it is. */
#define CHARGED_S 0.005
/* Least seconds of blocked time that are charged. */
#define BLOCKED_S 0.001
/* The time for which a helper waits for a CPU does not count, but at least wall time divided by this does. */
#define LOAD_MOST 8

static unsigned long unanswered;
static double helpers_cpu_s;
static char stuck_at[FOREIGN_NOTE_MAX];

unsigned long foreign_unanswered(void)
{
	return unanswered;
}

double foreign_cpu_s(void)
{
	return helpers_cpu_s;
}

const char *foreign_stuck_at(void)
{
	return stuck_at;
}

void foreign_lane_drop(struct foreign_lane *lane)
{
	if (lane->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, lane->pidfd, SIGKILL, NULL, 0);
		close(lane->pidfd);
	}
	if (lane->fd >= 0) {
		close(lane->fd);
		foreign_maker_free_slot(lane->slot);
	}
	free(lane->bytes);
	*lane = (struct foreign_lane){.fd = -1, .pidfd = -1};
}

int foreign_lane_need_helper(struct foreign_lane *lane)
{
	int fds[2] = {-1, -1}, err;
	uint64_t pid;

	if (lane->fd >= 0)
		return 0;
	err = foreign_maker_get_helper(fds, &lane->slot);
	if (err)
		return -ENOTCONN;
	lane->fd = fds[0];
	lane->pidfd = fds[1];
	lane->pid = procfs_fdinfo(lane->pidfd, "Pid:", &pid) ? 0 : (pid_t)pid;
	lane->known = clock_s(CLOCK_MONOTONIC);
	return 0;
}

double foreign_lane_spent_s(const struct foreign_lane *lane)
{
	double wall = clock_s(CLOCK_MONOTONIC) - lane->begin, spent;
	unsigned long long ran_ns, queued_ns;
	struct procfs_stat stat;
	char text[96];

	if (!lane->pid || procfs_read_some(lane->pid, "schedstat", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%llu %llu", &ran_ns, &queued_ns) != 2 || procfs_read_stat(lane->pid, &stat))
		return wall;
	/* The kernel's counters do not include a wait that is not over yet. */
	if (stat.state == 'R')
		spent = ((double)ran_ns - (double)lane->cpu_ns) / 1e9;
	else
		spent = wall - ((double)queued_ns - (double)lane->queued_ns) / 1e9;
	if (spent > wall)
		return wall;
	return spent > wall / LOAD_MOST ? spent : wall / LOAD_MOST;
}

/* Seconds that an answered question took, without those for which the helper waited for a CPU. */
static double took_s(const struct foreign_lane *lane)
{
	double wall = lane->answered - lane->begin;
	double queued = (double)(lane->head.queued_ns - lane->queued_ns) / 1e9;

	if (lane->head.queued_ns < lane->queued_ns)
		return wall;
	return queued < wall ? wall - queued : 0;
}

void foreign_lane_charge(const struct foreign_lane *lane, double took)
{
	if (took >= CHARGED_S)
		foreign_charge_used(lane->subject.pid, took);
}

void foreign_lane_give_up(struct foreign_lane *lane, bool waited_for)
{
	double spent = foreign_lane_spent_s(lane);

	foreign_lane_charge(lane, spent);
	unanswered++;
	if (waited_for)
		foreign_charge_blocked(lane->subject.pid, spent);
	else
		foreign_charge_vain(lane->subject.pid);
	snprintf(stuck_at, sizeof(stuck_at), "%.*s", FOREIGN_NOTE_MAX - 1, foreign_maker_note(lane->slot));
	foreign_lane_drop(lane);
}

void foreign_lane_clear(struct foreign_lane *lane)
{
	double cpu_s = lane->head.cpu_ns > lane->cpu_ns ? (double)(lane->head.cpu_ns - lane->cpu_ns) / 1e9 : 0;
	double wall_s = lane->answered - lane->known;

	/* A compromised helper can report any time. */
	helpers_cpu_s += cpu_s < wall_s ? cpu_s : wall_s;
	lane->known = lane->answered;
	lane->cpu_ns = lane->head.cpu_ns;
	lane->queued_ns = lane->head.queued_ns;
	free(lane->bytes);
	lane->bytes = NULL;
	lane->busy = false;
	if (lane->cpu_ns / 1000000000 >= FOREIGN_HELPER_CPU_S)
		foreign_lane_drop(lane);
}

/*
 * Sends a question without waiting: the socket of a helper that waits for one has room for a whole question. Fails when
 * the helper has ended, or has written something before it was asked.
 */
static int send_question(const struct foreign_lane *lane, const void *message, size_t size)
{
	char byte;

	if (recv(lane->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR))
		return -ECONNRESET;
	return send(lane->fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ? 0 : -ECONNRESET;
}

int foreign_lane_post(struct foreign_lane *lane, foreign_service *service, struct foreign_subject subject,
		      const void *question, size_t size)
{
	struct {
		struct foreign_head head;
		char bytes[FOREIGN_QUESTION_MAX];
	} message = {.head = {.size = (uint32_t)size}};
	int kind = foreign_maker_index_of(service);
	int err = kind < 0 ? kind : size > sizeof(message.bytes) ? -E2BIG : foreign_lane_need_helper(lane);

	if (err)
		return err;
	message.head.service = (uint32_t)kind;
	memcpy(message.bytes, question, size);
	err = send_question(lane, &message, sizeof(message.head) + size);
	if (err) {
		/* The helper ended after its last answer, which is not this subject's fault. */
		foreign_lane_drop(lane);
		err = foreign_lane_need_helper(lane) ?: send_question(lane, &message, sizeof(message.head) + size);
	}
	if (err)
		return err;
	lane->subject = subject;
	lane->service = service;
	lane->begin = clock_s(CLOCK_MONOTONIC);
	lane->answered = 0;
	lane->have = 0;
	lane->busy = true;
	return 0;
}

int foreign_lane_pump(struct foreign_lane *lane)
{
	for (;;) {
		size_t whole = sizeof(lane->head);
		char *to = (char *)&lane->head + lane->have;
		ssize_t n;

		if (lane->have >= sizeof(lane->head)) {
			if (lane->head.size > FOREIGN_ANSWER_MAX || lane->head.said > FOREIGN_SAID_MAX)
				return -EPROTO;
			whole += lane->head.size + lane->head.said;
			if (lane->have == whole) {
				if (lane->answered <= 0)
					lane->answered = clock_s(CLOCK_MONOTONIC);
				return 1;
			}
			if (!lane->bytes)
				lane->bytes = malloc(whole - sizeof(lane->head));
			if (!lane->bytes)
				return -ENOMEM;
			to = lane->bytes + lane->have - sizeof(lane->head);
		}
		n = recv(lane->fd, to, whole - lane->have, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return -ECONNRESET;
		lane->have += (size_t)n;
	}
}

bool foreign_is_interrupted(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (sigismember(&pending, ends[i]))
			return true;
	}
	return false;
}

int foreign_lane_wait(struct foreign_lane *lane, double deadline)
{
	int ret = foreign_lane_pump(lane);

	while (!ret) {
		struct pollfd fd = {.fd = lane->fd, .events = POLLIN};
		double left = deadline - clock_s(CLOCK_MONOTONIC);

		if (left <= 0)
			break;
		if (left > FOREIGN_SLICE_S)
			left = FOREIGN_SLICE_S;
		poll(&fd, 1, (int)(left * 1000) + 1);
		ret = foreign_lane_pump(lane);
		if (!ret && foreign_is_interrupted())
			return -EINTR;
	}
	return ret;
}

/* Prints the helper's messages. */
static void say_all(const char *said, size_t size)
{
	while (size > 1) {
		size_t len = strnlen(said + 1, size - 1);

		if (*said >= LOG_ERROR && *said <= LOG_DEBUG)
			log_printf((enum log_level) * said, "%.*s", (int)len, said + 1);
		if (len + 2 > size)
			break;
		said += len + 2;
		size -= len + 2;
	}
}

/* Returns the service's result. Results that only this side may return are replaced by -EPROTO. */
static int result_of(const struct foreign_lane *lane)
{
	if (lane->head.result == -EINPROGRESS || foreign_has_no_answer(lane->head.result))
		return -EPROTO;
	return lane->head.result;
}

int foreign_lane_take(struct foreign_lane *lane, void *answer, size_t room, size_t *size)
{
	int result = result_of(lane);

	foreign_lane_charge(lane, took_s(lane));
	*size = lane->head.size < room ? lane->head.size : room;
	if (*size)
		memcpy(answer, lane->bytes, *size);
	if (lane->head.said)
		say_all(lane->bytes + lane->head.size, lane->head.said);
	foreign_lane_clear(lane);
	return result;
}

void foreign_lane_charge_blocked(const struct foreign_lane *lane)
{
	double blocked = (double)lane->head.blocked_ns / 1e9, took = took_s(lane);

	if (blocked >= BLOCKED_S)
		foreign_charge_blocked(lane->subject.pid, blocked < took ? blocked : took);
}

void foreign_lane_discard(struct foreign_lane *lane)
{
	if (foreign_lane_pump(lane) == 1)
		foreign_lane_clear(lane);
	else
		foreign_lane_drop(lane);
}
