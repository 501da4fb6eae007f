// SPDX-License-Identifier: Apache-2.0
/* Starts and asks the process that keeps a folder of epochs. */
#include "archive/epoch_keeper.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "archive/epoch_keeper_protocol.h"
#include "base/clock.h"
#include "base/log.h"
#include "child/message.h"

/* Seconds in which a process ends that could not begin. */
#define BEGIN_END_S 10.0

/* Takes one answer. Returns 0, or -EPIPE when the process has ended. */
static int take_answer(struct archive_keeper *keeper, struct keeper_answer *a)
{
	if (recv(keeper->process.socket, a, sizeof(*a), 0) != (ssize_t)sizeof(*a))
		return -EPIPE;
	keeper->counts = a->counts;
	if (a->kind == KEEPER_DONE && keeper->waiting)
		keeper->waiting--;
	return 0;
}

int archive_keeper_start(struct archive_keeper *keeper, struct archive_store *store,
			 const struct archive_limits *limits, struct error *error)
{
	struct keeper_begin begin = {.store = store, .limits = *limits};
	int err;

	*keeper = (struct archive_keeper){0};
	err = child_start(&keeper->process, "keeps the epochs", keeper_run, &begin, error);
	if (err)
		return err;
	archive_store_close(store);
	/* Its first answer has the counts. */
	if (!archive_keeper_poll(keeper, -1))
		return 0;
	archive_keeper_stop(keeper, BEGIN_END_S);
	return error_set(error, -EPIPE, "the process that keeps the epochs ended at once");
}

int archive_keeper_poll(struct archive_keeper *keeper, int wait_ms)
{
	struct pollfd wait = {.fd = keeper->process.socket, .events = POLLIN};
	int n;

	while ((n = poll(&wait, 1, wait_ms)) > 0 || (n < 0 && errno == EINTR)) {
		struct keeper_answer a = {0};
		int err = n < 0 ? 0 : take_answer(keeper, &a);

		if (err)
			return err;
		if (a.error.code)
			log_error("%s", a.error.text);
		wait_ms = 0;
	}
	return n < 0 ? -errno : 0;
}

/* Copies a profile to a file in memory. Returns its descriptor or negative errno. */
static int copy_to_memory(const struct profile *profile)
{
	int fd = memfd_create("pybpf-epoch", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;

	err = err ?: archive_store_copy(profile, fd);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int archive_keeper_write(struct archive_keeper *keeper, const struct archive_span *span, const struct profile *profile)
{
	const struct keeper_request request = {.kind = KEEPER_WRITE, .span = *span};
	int fd, err;

	if (keeper->waiting >= ARCHIVE_KEEPER_WAITING_MAX)
		return -EBUSY;
	fd = copy_to_memory(profile);
	if (fd < 0)
		return fd;
	err = child_send(keeper->process.socket, &request, sizeof(request), &fd, 1, MSG_DONTWAIT);
	if (err == -EAGAIN)
		err = -EBUSY;
	close(fd);
	keeper->waiting += !err;
	return err;
}

int archive_keeper_limit(struct archive_keeper *keeper, const struct archive_limits *limits)
{
	const struct keeper_request request = {.kind = KEEPER_LIMIT, .limits = *limits};

	/* If the socket's queue is full, the disk does not answer, and the limits stay as they are. */
	return child_send(keeper->process.socket, &request, sizeof(request), NULL, 0, MSG_DONTWAIT);
}

unsigned archive_keeper_stop(struct archive_keeper *keeper, double wait_s)
{
	const double until = clock_s(CLOCK_MONOTONIC) + wait_s;
	double left = wait_s;
	unsigned waiting;

	if (!keeper->process.pid)
		return 0;
	while (keeper->waiting && left > 0 && !archive_keeper_poll(keeper, (int)(left * 1000) + 1))
		left = until - clock_s(CLOCK_MONOTONIC);
	left = until - clock_s(CLOCK_MONOTONIC);
	child_end(&keeper->process, left > 0 ? left : 0);
	waiting = keeper->waiting;
	keeper->waiting = 0;
	return waiting;
}
