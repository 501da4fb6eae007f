// SPDX-License-Identifier: Apache-2.0
/* One worker: a helper, the question that it works on, and how long that takes. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helper/internal.h"
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
static char stuck_at[HELPER_NOTE_MAX];

unsigned long helper_unanswered(void)
{
	return unanswered;
}

double helper_cpu_s(void)
{
	return helpers_cpu_s;
}

const char *helper_stuck_at(void)
{
	return stuck_at;
}

void helper_worker_drop(struct helper_worker *worker)
{
	if (worker->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
		close(worker->pidfd);
	}
	if (worker->fd >= 0) {
		close(worker->fd);
		helper_forkserver_free_slot(worker->slot);
	}
	free(worker->bytes);
	*worker = (struct helper_worker){.fd = -1, .pidfd = -1};
}

int helper_worker_need_process(struct helper_worker *worker)
{
	int fds[2] = {-1, -1}, err;
	uint64_t pid;

	if (worker->fd >= 0)
		return 0;
	err = helper_forkserver_get_process(fds, &worker->slot);
	if (err)
		return -ENOTCONN;
	worker->fd = fds[0];
	worker->pidfd = fds[1];
	worker->pid = procfs_fdinfo(worker->pidfd, "Pid:", &pid) ? 0 : (pid_t)pid;
	worker->known = clock_s(CLOCK_MONOTONIC);
	return 0;
}

double helper_worker_spent_s(const struct helper_worker *worker)
{
	double wall = clock_s(CLOCK_MONOTONIC) - worker->begin, spent;
	unsigned long long ran_ns, queued_ns;
	struct procfs_stat stat;
	char text[96];

	if (!worker->pid || procfs_read_some(worker->pid, "schedstat", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%llu %llu", &ran_ns, &queued_ns) != 2 || procfs_read_stat(worker->pid, &stat))
		return wall;
	/* The kernel's counters do not include a wait that is not over yet. */
	if (stat.state == 'R')
		spent = ((double)ran_ns - (double)worker->cpu_ns) / 1e9;
	else
		spent = wall - ((double)queued_ns - (double)worker->queued_ns) / 1e9;
	if (spent > wall)
		return wall;
	return spent > wall / LOAD_MOST ? spent : wall / LOAD_MOST;
}

/* Seconds that an answered question took, without those for which the helper waited for a CPU. */
static double took_s(const struct helper_worker *worker)
{
	double wall = worker->answered - worker->begin;
	double queued = (double)(worker->head.queued_ns - worker->queued_ns) / 1e9;

	if (worker->head.queued_ns < worker->queued_ns)
		return wall;
	return queued < wall ? wall - queued : 0;
}

void helper_worker_charge(const struct helper_worker *worker, double took)
{
	if (took >= CHARGED_S)
		helper_charge_used(worker->subject.pid, took);
}

void helper_worker_give_up(struct helper_worker *worker, bool waited_for)
{
	double spent = helper_worker_spent_s(worker);

	helper_worker_charge(worker, spent);
	unanswered++;
	if (waited_for)
		helper_charge_blocked(worker->subject.pid, spent);
	else
		helper_charge_timeout(worker->subject.pid);
	snprintf(stuck_at, sizeof(stuck_at), "%.*s", HELPER_NOTE_MAX - 1, helper_forkserver_note(worker->slot));
	helper_worker_drop(worker);
}

void helper_worker_clear(struct helper_worker *worker)
{
	double cpu_s = worker->head.cpu_ns > worker->cpu_ns ? (double)(worker->head.cpu_ns - worker->cpu_ns) / 1e9 : 0;
	double wall_s = worker->answered - worker->known;

	/* A compromised helper can report any time. */
	helpers_cpu_s += cpu_s < wall_s ? cpu_s : wall_s;
	worker->known = worker->answered;
	worker->cpu_ns = worker->head.cpu_ns;
	worker->queued_ns = worker->head.queued_ns;
	free(worker->bytes);
	worker->bytes = NULL;
	worker->busy = false;
	if (worker->cpu_ns / 1000000000 >= HELPER_CPU_S)
		helper_worker_drop(worker);
}

/*
 * Sends a question without waiting: the socket of a helper that waits for one has room for a whole question. Fails when
 * the helper has ended, or has written something before it was asked.
 */
static int send_question(const struct helper_worker *worker, const void *message, size_t size)
{
	char byte;

	if (recv(worker->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR))
		return -ECONNRESET;
	return send(worker->fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ? 0 : -ECONNRESET;
}

int helper_worker_post(struct helper_worker *worker, helper_service *service, struct helper_subject subject,
		       const void *question, size_t size)
{
	struct {
		struct helper_head head;
		char bytes[HELPER_QUESTION_MAX];
	} message = {.head = {.size = (uint32_t)size}};
	int kind = helper_forkserver_index_of(service);
	int err = kind < 0 ? kind : size > sizeof(message.bytes) ? -E2BIG : helper_worker_need_process(worker);

	if (err)
		return err;
	message.head.service = (uint32_t)kind;
	memcpy(message.bytes, question, size);
	err = send_question(worker, &message, sizeof(message.head) + size);
	if (err) {
		/* The helper ended after its last answer, which is not this subject's fault. */
		helper_worker_drop(worker);
		err = helper_worker_need_process(worker)
			      ?: send_question(worker, &message, sizeof(message.head) + size);
	}
	if (err)
		return err;
	worker->subject = subject;
	worker->service = service;
	worker->begin = clock_s(CLOCK_MONOTONIC);
	worker->answered = 0;
	worker->have = 0;
	worker->busy = true;
	return 0;
}

int helper_worker_pump(struct helper_worker *worker)
{
	for (;;) {
		size_t whole = sizeof(worker->head);
		char *to = (char *)&worker->head + worker->have;
		ssize_t n;

		if (worker->have >= sizeof(worker->head)) {
			if (worker->head.size > HELPER_ANSWER_MAX || worker->head.said > HELPER_SAID_MAX)
				return -EPROTO;
			whole += worker->head.size + worker->head.said;
			if (worker->have == whole) {
				if (worker->answered <= 0)
					worker->answered = clock_s(CLOCK_MONOTONIC);
				return 1;
			}
			if (!worker->bytes)
				worker->bytes = malloc(whole - sizeof(worker->head));
			if (!worker->bytes)
				return -ENOMEM;
			to = worker->bytes + worker->have - sizeof(worker->head);
		}
		n = recv(worker->fd, to, whole - worker->have, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return -ECONNRESET;
		worker->have += (size_t)n;
	}
}

int helper_worker_wait(struct helper_worker *worker, double deadline)
{
	int ret = helper_worker_pump(worker);

	while (!ret) {
		struct pollfd fd = {.fd = worker->fd, .events = POLLIN};
		double left = deadline - clock_s(CLOCK_MONOTONIC);

		if (left <= 0)
			break;
		if (left > HELPER_SLICE_S)
			left = HELPER_SLICE_S;
		poll(&fd, 1, (int)(left * 1000) + 1);
		ret = helper_worker_pump(worker);
		if (!ret && helper_is_interrupted())
			return -EINTR;
	}
	return ret;
}

/* Prints the helper's messages. */
static void say_all(const char *said, size_t size)
{
	while (size > 1) {
		size_t len = strnlen(said + 1, size - 1);
		unsigned char level = (unsigned char)*said;

		if (level <= LOG_DEBUG)
			log_printf((enum log_level)level, "%.*s", (int)len, said + 1);
		if (len + 2 > size)
			break;
		said += len + 2;
		size -= len + 2;
	}
}

/* Returns the service's result. Results that only this side may return are replaced by -EPROTO. */
static int result_of(const struct helper_worker *worker)
{
	if (worker->head.result == -EINPROGRESS || helper_has_no_answer(worker->head.result))
		return -EPROTO;
	return worker->head.result;
}

int helper_worker_take(struct helper_worker *worker, void *answer, size_t room, size_t *size)
{
	int result = result_of(worker);

	helper_worker_charge(worker, took_s(worker));
	*size = worker->head.size < room ? worker->head.size : room;
	if (*size)
		memcpy(answer, worker->bytes, *size);
	if (worker->head.said)
		say_all(worker->bytes + worker->head.size, worker->head.said);
	helper_worker_clear(worker);
	return result;
}

void helper_worker_charge_blocked(const struct helper_worker *worker)
{
	double blocked = (double)worker->head.blocked_ns / 1e9, took = took_s(worker);

	if (blocked >= BLOCKED_S)
		helper_charge_blocked(worker->subject.pid, blocked < took ? blocked : took);
}

void helper_worker_discard(struct helper_worker *worker)
{
	if (helper_worker_pump(worker) == 1)
		helper_worker_clear(worker);
	else
		helper_worker_drop(worker);
}
