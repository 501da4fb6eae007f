// SPDX-License-Identifier: Apache-2.0
/* Starts and asks the process that keeps a folder of epochs. */
#include "archive/keeper.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "archive/keeper_protocol.h"
#include "base/log.h"
#include "child/message.h"

static int take_file(struct archive_keeper *keeper, int fd)
{
	FILE *file = fd < 0 || keeper->nr_files == ARCHIVE_KEEPER_FILES ? NULL : fdopen(fd, "w");

	if (file)
		keeper->files[keeper->nr_files++] = file;
	else if (fd >= 0)
		close(fd);
	return file ? 0 : -EPIPE;
}

/* Takes one answer. Returns 0, or -EPIPE when the process has ended. */
static int take_answer(struct archive_keeper *keeper, struct keeper_answer *a)
{
	int fd;

	if (child_receive(keeper->process.socket, a, sizeof(*a), &fd, 1, 0) != (ssize_t)sizeof(*a)) {
		if (fd >= 0)
			close(fd);
		return -EPIPE;
	}
	keeper->counts = a->counts;
	if (a->kind == KEEPER_FILE)
		return take_file(keeper, fd);
	if (fd >= 0)
		close(fd);
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
	archive_keeper_stop(keeper);
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

FILE *archive_keeper_file(const struct archive_keeper *keeper)
{
	return keeper->nr_files ? keeper->files[0] : NULL;
}

int archive_keeper_commit(struct archive_keeper *keeper, const struct archive_span *span, int err)
{
	struct keeper_request request = {.kind = KEEPER_COMMIT, .span = *span};
	FILE *file = keeper->files[0];

	memmove(keeper->files, keeper->files + 1, --keeper->nr_files * sizeof(*keeper->files));
	if (!err && ferror(file))
		err = -EIO;
	if (fclose(file) && !err)
		err = -errno;
	if (err)
		request.kind = KEEPER_DISCARD;
	if (send(keeper->process.socket, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		return -EPIPE;
	keeper->waiting++;
	return err;
}

int archive_keeper_limit(struct archive_keeper *keeper, const struct archive_limits *limits)
{
	const struct keeper_request request = {.kind = KEEPER_LIMIT, .limits = *limits};

	return send(keeper->process.socket, &request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request)
		       ? 0
		       : -EPIPE;
}

void archive_keeper_stop(struct archive_keeper *keeper)
{
	if (!keeper->process.pid)
		return;
	while (keeper->waiting && !archive_keeper_poll(keeper, -1))
		;
	for (size_t i = 0; i < keeper->nr_files; i++)
		fclose(keeper->files[i]);
	keeper->nr_files = 0;
	child_end(&keeper->process, INFINITY);
}
