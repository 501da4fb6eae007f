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
#include "base/log.h"
#include "child/child.h"
#include "child/message.h"
#include "helper/internal.h"

/* Seconds in which the forkserver makes a helper, which takes it a millisecond, and in which it ends. */
#define MAKE_S 2.0
#define END_S  1.0
/* Interval between looks at whether it has ended, in ms. */
#define LOOK_MS 5

static struct {
	pid_t pid;
	int fd;
	bool asked; /* for a helper in the slot asked_slot, which has not come yet */
	unsigned char asked_slot;
	double asked_at; /* CLOCK_MONOTONIC seconds */
	bool said;       /* that it does not answer */
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
	const double until = clock_s(CLOCK_MONOTONIC) + END_S;

	close(forkserver.fd);
	forkserver.fd = -1;
	forkserver.asked = false;
	/* The closed socket makes the forkserver end; if somebody has stopped it, the end of this process does. */
	while (waitpid(forkserver.pid, NULL, WNOHANG) == 0 && clock_s(CLOCK_MONOTONIC) < until)
		poll(NULL, 0, LOOK_MS);
	munmap(forkserver.notes, sizeof(*forkserver.notes));
}

/* Waits for the forkserver's reply. Returns 0, -EINTR when a signal that ends a run is pending, or -ETIMEDOUT. */
static int wait_for_reply(void)
{
	struct pollfd socket = {.fd = forkserver.fd, .events = POLLIN};

	while (!poll(&socket, 1, 0)) {
		if (helper_is_interrupted())
			return -EINTR;
		if (clock_s(CLOCK_MONOTONIC) - forkserver.asked_at > MAKE_S)
			return -ETIMEDOUT;
		poll(&socket, 1, (int)(HELPER_SLICE_S * 1000));
	}
	return 0;
}

/* Receives the two descriptors that the forkserver sends with one byte. Returns 0 or negative errno. */
static int receive_fds(int fds[2])
{
	int err = wait_for_reply();
	char byte;
	ssize_t n;

	if (err)
		return err;
	forkserver.asked = false;
	n = child_receive(forkserver.fd, &byte, 1, fds, 2, 0);
	if (n != 1)
		return n < 0 ? (int)n : -ECONNRESET;
	if (fds[1] >= 0)
		return 0;
	if (fds[0] >= 0)
		close(fds[0]);
	return -EAGAIN;
}

/* Asks for a helper, unless one that was asked for has not come yet. Returns 0 or negative errno. */
static int ask(void)
{
	unsigned char slot = 0;

	if (forkserver.asked)
		return 0;
	while (slot < HELPER_SLOTS - 1 && forkserver.used[slot])
		slot++;
	if (send(forkserver.fd, &slot, 1, MSG_NOSIGNAL) != 1)
		return -errno;
	forkserver.asked = true;
	forkserver.asked_slot = slot;
	forkserver.asked_at = clock_s(CLOCK_MONOTONIC);
	return 0;
}

int helper_forkserver_get_process(int fds[2], unsigned *slot)
{
	int err = ask() ?: receive_fds(fds);

	if (err && !forkserver.no_helper_since)
		forkserver.no_helper_since = clock_s(CLOCK_MONOTONIC);
	if (err == -ETIMEDOUT && !forkserver.said) {
		log_warn("the process that makes helpers (pybpf-maker, %d) does not answer: nothing is read of "
			 "processes "
			 "until it does",
			 forkserver.pid);
		forkserver.said = true;
	}
	if (err)
		return err;
	forkserver.no_helper_since = 0;
	forkserver.said = false;
	forkserver.used[forkserver.asked_slot] = true;
	*slot = forkserver.asked_slot;
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
