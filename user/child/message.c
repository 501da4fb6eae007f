// SPDX-License-Identifier: Apache-2.0
/* Messages between processes, with descriptors. */
#include "child/message.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"

/* Room for the descriptors of a message. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(CHILD_DESCRIPTORS_MAX * sizeof(int))];
};

int child_send(int socket, const void *message, size_t size, const int *fds, size_t count, int flags)
{
	union control control = {.bytes = ""};
	struct iovec bytes = {.iov_base = (void *)message, .iov_len = size};
	struct msghdr head = {.msg_iov = &bytes, .msg_iovlen = 1};
	struct cmsghdr *with;

	if (count) {
		head.msg_control = control.bytes;
		head.msg_controllen = CMSG_SPACE(count * sizeof(int));
		with = CMSG_FIRSTHDR(&head);
		with->cmsg_level = SOL_SOCKET;
		with->cmsg_type = SCM_RIGHTS;
		with->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(with), fds, count * sizeof(int));
	}
	return sendmsg(socket, &head, flags | MSG_NOSIGNAL) == (ssize_t)size ? 0 : -errno;
}

ssize_t child_receive(int socket, void *message, size_t size, int *fds, size_t count, int flags)
{
	union control control;
	struct iovec bytes = {.iov_base = message, .iov_len = size};
	/* Not CMSG_SPACE(): what it adds for alignment has room for one more descriptor. */
	struct msghdr head = {.msg_iov = &bytes,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = CMSG_LEN(count * sizeof(int))};
	const struct cmsghdr *with;
	ssize_t n;

	do {
		n = recvmsg(socket, &head, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	if (n < 0)
		return -errno;
	with = CMSG_FIRSTHDR(&head);
	if (with && with->cmsg_level == SOL_SOCKET && with->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(with), with->cmsg_len - CMSG_LEN(0));
	return n;
}

int child_write_memory_file(const char *name, const void *bytes, size_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = io_write(fd, bytes, size);
	if (!err)
		return fd;
	close(fd);
	return err;
}
