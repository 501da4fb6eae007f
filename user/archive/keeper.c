// SPDX-License-Identifier: Apache-2.0
/* Starts and asks the process that keeps a folder of epochs. */
#include "archive/keeper.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/keeper_protocol.h"
#include "base/log.h"

/* Returns the descriptor that came with a message, or -1. */
static int descriptor_of(struct msghdr *message)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(head), sizeof(int));
	return fd;
}

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
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {.iov_base = a, .iov_len = sizeof(*a)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

	if (recvmsg(keeper->fd, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*a))
		return -EPIPE;
	keeper->counts = a->counts;
	if (a->kind == KEEPER_FILE)
		return take_file(keeper, descriptor_of(&message));
	if (a->kind == KEEPER_DONE && keeper->waiting)
		keeper->waiting--;
	return 0;
}

int archive_keeper_start(struct archive_keeper *keeper, struct archive_store *store,
			 const struct archive_limits *limits, struct error *error)
{
	struct keeper_answer ready;
	int ends[2], err;

	*keeper = (struct archive_keeper){0};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return error_set(error, -errno, "cannot make a socket: %s", strerror(errno));
	keeper->pid = fork();
	if (keeper->pid < 0) {
		err = -errno;
		keeper->pid = 0;
		close(ends[0]);
		close(ends[1]);
		return error_set(error, err, "cannot start a process: %s", strerror(-err));
	}
	if (keeper->pid == 0) {
		close(ends[0]);
		keeper_run(ends[1], store, limits);
	}
	close(ends[1]);
	archive_store_close(store);
	keeper->fd = ends[0];
	error_clear(error);
	if (take_answer(keeper, &ready))
		error_set(error, -EPIPE, "the process that keeps the epochs ended at once");
	else if (ready.error.code)
		*error = ready.error;
	if (error->code)
		archive_keeper_stop(keeper);
	return error->code;
}

int archive_keeper_poll(struct archive_keeper *keeper, int wait_ms)
{
	struct pollfd wait = {.fd = keeper->fd, .events = POLLIN};
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
	if (send(keeper->fd, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		return -EPIPE;
	keeper->waiting++;
	return err;
}

int archive_keeper_limit(struct archive_keeper *keeper, const struct archive_limits *limits)
{
	const struct keeper_request request = {.kind = KEEPER_LIMIT, .limits = *limits};

	return send(keeper->fd, &request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request) ? 0 : -EPIPE;
}

void archive_keeper_stop(struct archive_keeper *keeper)
{
	if (!keeper->pid)
		return;
	while (keeper->waiting && !archive_keeper_poll(keeper, -1))
		;
	for (size_t i = 0; i < keeper->nr_files; i++)
		fclose(keeper->files[i]);
	keeper->nr_files = 0;
	close(keeper->fd);
	while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	keeper->pid = 0;
}
