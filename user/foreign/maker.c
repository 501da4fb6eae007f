// SPDX-License-Identifier: Apache-2.0
/* Starts and stops the process that makes helpers, and asks it for helpers. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "foreign/internal.h"
#include "base/clock.h"

static struct {
	pid_t pid;
	int fd;
	struct foreign_notes *notes;
	const struct foreign_services *services;
	bool used[FOREIGN_SLOTS];
	double no_helper_since; /* 0: the last attempt succeeded */
} maker = {.fd = -1};

bool foreign_maker_is_on(void)
{
	return maker.fd >= 0;
}

int foreign_maker_start(const struct foreign_services *services, void *state)
{
	pid_t self = getpid();
	int ends[2];

	/* cppcheck-suppress invalidFunctionArg; -1 is what MAP_ANONYMOUS goes with. */
	maker.notes = mmap(NULL, sizeof(*maker.notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (maker.notes == MAP_FAILED)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	maker.pid = fork();
	if (maker.pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (maker.pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != self)
			_exit(0);
		close(ends[0]);
		foreign_make_helpers(ends[1], maker.notes, services, state);
	}
	close(ends[1]);
	maker.fd = ends[0];
	maker.services = services;
	return 0;
}

int foreign_maker_index_of(foreign_service *service)
{
	for (uint32_t i = 0; i < maker.services->count; i++) {
		if (maker.services->items[i] == service)
			return (int)i;
	}
	return -ENOSYS;
}

void foreign_maker_stop(void)
{
	close(maker.fd);
	maker.fd = -1;
	/* The closed socket makes the maker end. */
	waitpid(maker.pid, NULL, 0);
	munmap(maker.notes, sizeof(*maker.notes));
}

/* Receives the two descriptors that the maker sends with one byte. */
static int receive_fds(int fds[2])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	char byte;
	struct iovec bytes = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	const struct cmsghdr *rights;
	ssize_t n;

	do {
		n = recvmsg(maker.fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	rights = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	if (n != 1)
		return n < 0 ? -errno : -ECONNRESET;
	if (!rights || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return -EAGAIN;
	memcpy(fds, CMSG_DATA(rights), 2 * sizeof(int));
	return 0;
}

int foreign_maker_get_helper(int fds[2], unsigned *slot)
{
	unsigned char byte = 0;
	int err;

	while (byte < FOREIGN_SLOTS - 1 && maker.used[byte])
		byte++;
	err = send(maker.fd, &byte, 1, MSG_NOSIGNAL) == 1 ? receive_fds(fds) : -errno;
	if (err && !maker.no_helper_since)
		maker.no_helper_since = clock_s(CLOCK_MONOTONIC);
	if (err)
		return err;
	maker.no_helper_since = 0;
	maker.used[byte] = true;
	*slot = byte;
	return 0;
}

void foreign_maker_free_slot(unsigned slot)
{
	maker.used[slot] = false;
}

double foreign_maker_failing_since(void)
{
	return maker.no_helper_since;
}

const char *foreign_maker_note(unsigned slot)
{
	return maker.notes->text[slot];
}
