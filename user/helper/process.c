// SPDX-License-Identifier: Apache-2.0
/* The answering side: the forkserver, and the loop of a helper. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/activity.h"
#include "base/clock.h"
#include "base/log.h"
#include "child/child.h"
#include "child/message.h"
#include "helper/internal.h"
#include "rights/priority.h"
#include "rights/rights.h"

/*
 * Address space in bytes that a helper may add to what it has at its start. A file of 4 MiB of JSON that was crafted
 * for it takes 80 times its size; the largest file that a runtime writes takes a thirtieth of this limit. The symbols
 * of the largest extensions (polars) take 48 MiB.
 */
#define MEMORY_MAX (128ULL << 20)
#define FILES_MAX  64
/* AddressSanitizer's shadow takes 16 TiB of address space. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SHADOWED true
#else
#define SHADOWED false
#endif

static int read_fully(int fd, void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = read(fd, (char *)buf + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		done += (size_t)n;
	}
	return 0;
}

/* Writes all parts, in one message where the socket has room, so that the reader is woken once. Returns 0 or -EPIPE. */
static int write_fully(int fd, struct iovec *parts, size_t count)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

	while (message.msg_iovlen) {
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -EPIPE;
		while (message.msg_iovlen && (size_t)n >= message.msg_iov->iov_len) {
			n -= (ssize_t)message.msg_iov->iov_len;
			message.msg_iov++;
			message.msg_iovlen--;
		}
		if (message.msg_iovlen) {
			message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + n;
			message.msg_iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/* Returns the bytes of address space in use. */
static uint64_t address_space(void)
{
	unsigned long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm && fscanf(statm, "%lu", &pages) != 1)
		pages = 0;
	if (statm)
		fclose(statm);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void set_limits(void)
{
	if (!SHADOWED)
		child_limit(RLIMIT_AS, address_space() + MEMORY_MAX);
	child_limit(RLIMIT_NOFILE, FILES_MAX);
	child_limit(RLIMIT_FSIZE, 0);
	child_limit(RLIMIT_CORE, 0);
	child_limit(RLIMIT_NPROC, 0);
	child_limit(RLIMIT_CPU, 2 * HELPER_CPU_S);
}

uint64_t helper_own_cpu_ns(void)
{
	/* With RLIMIT_CPU, CLOCK_PROCESS_CPUTIME_ID advances at ticks (proc_sample_cputime_atomic()). A helper is one
	 * thread. */
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int kept = -1;

void helper_keep_open(int fd)
{
	kept = fd;
}

/*
 * Keeps fd and what helpers read by: a helper that waits for a file server in user space cannot even be killed before
 * that server is (request_wait_answer(), fs/fuse/dev.c), and whoever reads pybpf's output waits for its last writer.
 */
static void keep_only(int fd)
{
	int fds[] = {fd, kept};

	if (rights_keep_descriptors(fds, sizeof(fds) / sizeof(*fds)))
		_exit(1);
}

/*
 * Helpers inherit what is in place of the streams, since their forkserver may not open files for writing any more.
 */
static void detach(int fd)
{
	int fds[] = {fd, kept};

	if (child_let_go(STDERR_FILENO, fds, sizeof(fds) / sizeof(*fds)))
		_exit(1);
}

/* The helper's messages, which go with its answer: each is its level, its text and a NUL. */
static char said[HELPER_SAID_MAX];
static size_t said_size;

static void say(enum log_level level, const char *text)
{
	size_t size = strlen(text) + 2;

	if (size > sizeof(said) - said_size)
		return;
	said[said_size] = (char)level;
	memcpy(said + said_size + 1, text, size - 1);
	said_size += size;
}

/*
 * Nanoseconds for which this process has waited for a CPU so far. fd: /proc/self/schedstat, or -1 where the kernel has
 * none.
 */
static uint64_t queued_ns(int fd)
{
	char text[96];
	ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);
	unsigned long long queued;

	text[n > 0 ? n : 0] = '\0';
	return sscanf(text, "%*u %llu", &queued) == 1 ? queued : 0;
}

static void serve(int fd, const struct helper_services *services, void *state)
{
	char *question = malloc(HELPER_QUESTION_MAX), *answer = malloc(HELPER_ANSWER_MAX);
	int schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	uint64_t idle = 0; /* CPU time and time in the run queue before the question, in ns */
	struct helper_head head;

	log_set_sink(say);
	priority_watch_begin();
	while (question && answer && !read_fully(fd, &head, sizeof(head))) {
		uint64_t begin = clock_ns(CLOCK_MONOTONIC), wall, busy;
		struct iovec parts[3];
		size_t size = 0;

		if (head.size > HELPER_QUESTION_MAX || read_fully(fd, question, head.size))
			break;
		priority_watch();
		head.result = -ENOSYS;
		if (head.service < services->count)
			head.result = services->items[head.service](state, question, head.size, answer, &size);
		head.size = (uint32_t)size;
		head.said = (uint32_t)said_size;
		head.cpu_ns = helper_own_cpu_ns();
		head.queued_ns = queued_ns(schedstat);
		busy = head.cpu_ns + head.queued_ns;
		wall = clock_ns(CLOCK_MONOTONIC) - begin;
		head.blocked_ns = wall > busy - idle ? wall - (busy - idle) : 0;
		idle = busy;
		activity_set("");
		parts[0] = (struct iovec){&head, sizeof(head)};
		parts[1] = (struct iovec){answer, size};
		parts[2] = (struct iovec){said, head.said};
		if (write_fully(fd, parts, sizeof(parts) / sizeof(*parts)))
			break;
		said_size = 0;
	}
	_exit(0);
}

/* Drops rights. A helper that cannot be confined ends before it serves. */
static void confine(enum rights_level level)
{
	struct error error;

	if (rights_drop(&(struct rights_wanted){.level = level}, &error))
		_exit(1);
}

static pid_t forkserver;

void helper_tie_to_forkserver(void)
{
	if (forkserver)
		child_tie(forkserver);
}

static int make_helper(int fd, char *note, const struct helper_services *services, void *state)
{
	pid_t child;
	int ends[2], fds[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	child = fork();
	if (child == 0) {
		helper_tie_to_forkserver();
		keep_only(ends[1]);
		activity_show(note, HELPER_NOTE_MAX);
		prctl(PR_SET_NAME, "pybpf-helper");
		set_limits();
		confine(RIGHTS_HELPER);
		serve(ends[1], services, state);
	}
	close(ends[1]);
	fds[0] = ends[0];
	fds[1] = child < 0 ? -1 : (int)syscall(SYS_pidfd_open, child, 0);
	err = fds[1] < 0 ? -errno : child_send(fd, "", 1, fds, 2, 0);
	/* A helper whose descriptors were not sent ends: it reads the end of its socket. */
	close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	return err;
}

void helper_forkserver_main(int fd, struct helper_notes *notes, const struct helper_services *services, void *state)
{
	const struct sigaction gone = {.sa_handler = SIG_IGN, .sa_flags = SA_NOCLDWAIT};
	unsigned char slot;

	forkserver = getpid();
	detach(fd);
	prctl(PR_SET_NAME, "pybpf-maker");
	confine(RIGHTS_FORKSERVER);
	/* The kernel reaps helpers that end. */
	sigaction(SIGCHLD, &gone, NULL);
	while (!read_fully(fd, &slot, 1) && slot < HELPER_SLOTS) {
		/* Making a helper can fail for a moment, for lack of processes or memory. */
		if (make_helper(fd, notes->text[slot], services, state) && send(fd, "", 1, MSG_NOSIGNAL) != 1)
			break;
	}
	_exit(0);
}
