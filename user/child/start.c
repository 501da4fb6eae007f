// SPDX-License-Identifier: Apache-2.0
/* Starts and ends a process with one job. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/child.h"

/* Interval between looks at whether a process has ended, in ms. */
#define LOOK_MS 10

/* Waits until the process says that it has begun. Returns 0, or negative errno with a sentence in *error. */
static int wait_for_begin(int socket, const char *does, struct error *error)
{
	struct error said;
	ssize_t n;

	do {
		n = recv(socket, &said, sizeof(said), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(said))
		return error_set(error, -ECHILD, "the process that %s ended before it began", does);
	said.text[sizeof(said.text) - 1] = '\0';
	return said.code ? error_set(error, said.code, "%s", said.text) : 0;
}

int child_start(struct child *child, const char *does, child_main *run, void *state, struct error *error)
{
	int ends[2], err;

	*child = (struct child){0};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		err = -errno;
		return error_set(error, err, "cannot make a socket for the process that %s: %s", does, strerror(-err));
	}
	child->pid = fork();
	if (child->pid < 0) {
		err = -errno;
		*child = (struct child){0};
		close(ends[0]);
		close(ends[1]);
		return error_set(error, err, "cannot start the process that %s: %s", does, strerror(-err));
	}
	if (child->pid == 0) {
		close(ends[0]);
		run(ends[1], state);
		_exit(0);
	}
	close(ends[1]);
	child->socket = ends[0];
	err = wait_for_begin(child->socket, does, error);
	if (err)
		child_end(child, INFINITY);
	return err;
}

void child_end(struct child *child, double patience_s)
{
	const double until_s = clock_s(CLOCK_MONOTONIC) + patience_s;

	if (!child->pid)
		return;
	close(child->socket);
	if (isinf(patience_s)) {
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	} else {
		while (waitpid(child->pid, NULL, WNOHANG) == 0 && clock_s(CLOCK_MONOTONIC) < until_s)
			poll(NULL, 0, LOOK_MS);
	}
	*child = (struct child){0};
}

int child_share_memory(void **memory, size_t size, const char *does, struct error *error)
{
	int err;

	/* cppcheck-suppress invalidFunctionArg; -1 is what MAP_ANONYMOUS goes with. */
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (*memory != MAP_FAILED)
		return 0;
	err = -errno;
	*memory = NULL;
	return error_set(error, err, "cannot share memory with the process that %s: %s", does, strerror(-err));
}
