// SPDX-License-Identifier: Apache-2.0
/* Starts and stops the process that makes helpers, and asks it for helpers. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/child.h"
#include "child/message.h"
#include "helper/internal.h"

static struct {
	pid_t pid;
	int fd;
	struct helper_notes *notes;
	const struct helper_services *services;
	bool used[HELPER_SLOTS];
	double no_helper_since; /* 0: the last attempt succeeded */
} forkserver = {.fd = -1};

bool helper_forkserver_is_on(void)
{
	return forkserver.fd >= 0;
}

int helper_forkserver_start(const struct helper_services *services, void *state)
{
	const size_t size = sizeof(*forkserver.notes);
	pid_t self = getpid();
	int ends[2];

	/* cppcheck-suppress invalidFunctionArg; -1 is what MAP_ANONYMOUS goes with. */
	forkserver.notes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (forkserver.notes == MAP_FAILED)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	forkserver.pid = fork();
	if (forkserver.pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (forkserver.pid == 0) {
		child_tie(self);
		close(ends[0]);
		helper_forkserver_main(ends[1], forkserver.notes, services, state);
	}
	close(ends[1]);
	forkserver.fd = ends[0];
	forkserver.services = services;
	return 0;
}

int helper_forkserver_index_of(helper_service *service)
{
	for (uint32_t i = 0; i < forkserver.services->count; i++) {
		if (forkserver.services->items[i] == service)
			return (int)i;
	}
	return -ENOSYS;
}

bool helper_is_gone(void)
{
	struct pollfd poll_socket = {.fd = forkserver.fd};

	return forkserver.fd >= 0 && poll(&poll_socket, 1, 0) == 1 && poll_socket.revents & (POLLHUP | POLLERR);
}

void helper_forkserver_stop(void)
{
	close(forkserver.fd);
	forkserver.fd = -1;
	/* The closed socket makes the forkserver end. */
	waitpid(forkserver.pid, NULL, 0);
	munmap(forkserver.notes, sizeof(*forkserver.notes));
}

/* Receives the two descriptors that the forkserver sends with one byte. Returns 0 or negative errno. */
static int receive_fds(int fds[2])
{
	char byte;
	ssize_t n = child_receive(forkserver.fd, &byte, 1, fds, 2, 0);

	if (n != 1)
		return n < 0 ? (int)n : -ECONNRESET;
	if (fds[1] >= 0)
		return 0;
	if (fds[0] >= 0)
		close(fds[0]);
	return -EAGAIN;
}

int helper_forkserver_get_process(int fds[2], unsigned *slot)
{
	unsigned char byte = 0;
	int err;

	while (byte < HELPER_SLOTS - 1 && forkserver.used[byte])
		byte++;
	err = send(forkserver.fd, &byte, 1, MSG_NOSIGNAL) == 1 ? receive_fds(fds) : -errno;
	if (err && !forkserver.no_helper_since)
		forkserver.no_helper_since = clock_s(CLOCK_MONOTONIC);
	if (err)
		return err;
	forkserver.no_helper_since = 0;
	forkserver.used[byte] = true;
	*slot = byte;
	return 0;
}

void helper_forkserver_free_slot(unsigned slot)
{
	forkserver.used[slot] = false;
}

double helper_forkserver_failing_since(void)
{
	return forkserver.no_helper_since;
}

const char *helper_forkserver_note(unsigned slot)
{
	return forkserver.notes->text[slot];
}
