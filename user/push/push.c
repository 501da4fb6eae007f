// SPDX-License-Identifier: Apache-2.0
/* The side that pushes: starts the process, hands it bodies, and counts. */
#include "push/push.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "push/internal.h"

/* Seconds beyond its deadline for which the process is waited for. */
#define GRACE_S 2.0

struct push {
	pid_t keeper;
	int socket;
	struct push_shared *shared;
	uint64_t queue_max;
	/* What this side counts: bodies submitted, those that were not handed on, by cause, and bytes handed on. */
	uint64_t submitted, dropped[PUSH_CAUSES], handed_bytes;
};

/* Returns 0, or -EINVAL with a sentence in *error. */
static int check_url(const char *url, struct error *error)
{
	const char *host = strncasecmp(url, "http://", 7) == 0    ? url + 7
			   : strncasecmp(url, "https://", 8) == 0 ? url + 8
								  : NULL;

	if (!host || !*host || *host == '/')
		return error_set(error, -EINVAL, "%s: not a URL of HTTP; write http://HOST:PORT/PATH or https://...",
				 url);
	if (memchr(host, '@', strcspn(host, "/?#")))
		return error_set(error, -EINVAL,
				 "a URL must not have a user and a password in it; put them into the file "
				 "with the headers, as Authorization: Basic ...");
	for (const char *c = url; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '#')
			return error_set(error, -EINVAL, "%s: a URL to send to has no blank, control character or #",
					 url);
	}
	return 0;
}

int push_check(const struct push_options *options, struct error *error)
{
	struct push_secrets secrets;
	int err = check_url(options->url, error);

	if (err)
		return err;
	err = push_secrets_read(&secrets, options, error);
	push_secrets_free(&secrets);
	return err;
}

static int map_shared(struct push_shared **shared, struct error *error)
{
	/* cppcheck-suppress invalidFunctionArg; -1 is what MAP_ANONYMOUS goes with. */
	*shared = mmap(NULL, sizeof(**shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (*shared != MAP_FAILED)
		return 0;
	*shared = NULL;
	return error_set(error, -errno, "cannot share memory with the process that sends: %s", strerror(errno));
}

/* Waits until the process has begun. Returns 0, or negative errno with a sentence in *error. */
static int wait_for_begin(int socket, struct error *error)
{
	struct error said;
	ssize_t n;

	do {
		n = recv(socket, &said, sizeof(said), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(said))
		return error_set(error, -ECHILD, "the process that sends ended before it began");
	said.text[sizeof(said.text) - 1] = '\0';
	return said.code ? error_set(error, said.code, "%s", said.text) : 0;
}

static int fork_keeper(struct push *push, struct push_process *process, struct error *error)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return error_set(error, -errno, "cannot make a socket for the process that sends: %s", strerror(errno));
	push->keeper = fork();
	if (push->keeper == 0) {
		close(ends[0]);
		process->socket = ends[1];
		process->shared = push->shared;
		push_keep(process);
	}
	close(ends[1]);
	push->socket = ends[0];
	if (push->keeper < 0)
		return error_set(error, -errno, "cannot start the process that sends: %s", strerror(errno));
	return wait_for_begin(push->socket, error);
}

/* The closed socket ends the process. One that was stopped is left to itself. */
static void reap(pid_t keeper)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(GRACE_S * 1e9);

	while (waitpid(keeper, NULL, WNOHANG) == 0 && clock_ns(CLOCK_MONOTONIC) < until)
		poll(NULL, 0, 10);
}

static void free_push(struct push *push)
{
	if (push->socket >= 0)
		close(push->socket);
	if (push->keeper > 0)
		reap(push->keeper);
	if (push->shared)
		munmap(push->shared, sizeof(*push->shared));
	free(push);
}

int push_start(const struct push_options *options, struct push **started, struct error *error)
{
	struct push_process process = {
		.url = options->url,
		.queue_max = options->queue_max ?: PUSH_QUEUE_MAX_DEFAULT,
		.retry_s = options->retry_s > 0 ? options->retry_s : PUSH_RETRY_S_DEFAULT,
		.timeout_s = options->timeout_s > 0 ? options->timeout_s : PUSH_TIMEOUT_S_DEFAULT,
	};
	struct push *push = calloc(1, sizeof(*push));
	int err;

	*started = NULL;
	if (!push)
		return error_set(error, -ENOMEM, "cannot start the process that sends: out of memory");
	push->socket = -1;
	push->queue_max = process.queue_max;
	err = check_url(options->url, error);
	err = err ?: push_secrets_read(&process.secrets, options, error);
	err = err
		      ?: push_spool_open(&process.spool, options->spool, options->spool_max ?: PUSH_SPOOL_MAX_DEFAULT,
					 error);
	err = err ?: map_shared(&push->shared, error);
	err = err ?: fork_keeper(push, &process, error);
	push_spool_close(&process.spool);
	push_secrets_free(&process.secrets);
	if (err)
		free_push(push);
	else
		*started = push;
	return err;
}

/* Writes the body to a file in memory. Returns its descriptor or negative errno. */
static int write_body(const struct push_request *request)
{
	int fd = memfd_create("pybpf-profile", MFD_CLOEXEC);

	for (size_t done = 0; fd >= 0 && done < request->size;) {
		ssize_t n = write(fd, (const char *)request->body + done, request->size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = -errno;

			close(fd);
			return err;
		}
		done += (size_t)n;
	}
	return fd < 0 ? -errno : fd;
}

/* Sends a message with a descriptor, or -1. Never waits. Returns 0 or negative errno. */
static int send_message(int socket, const struct push_message *message, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = ""};
	struct iovec bytes = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
	struct msghdr head = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *with;

		head.msg_control = control.bytes;
		head.msg_controllen = sizeof(control.bytes);
		with = CMSG_FIRSTHDR(&head);
		with->cmsg_level = SOL_SOCKET;
		with->cmsg_type = SCM_RIGHTS;
		with->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(with), &fd, sizeof(fd));
	}
	return sendmsg(socket, &head, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*message) ? 0 : -errno;
}

static int hand_on(struct push *push, const struct push_request *request)
{
	struct push_message message = {.kind = PUSH_BODY, .compress = request->compress, .size = request->size};
	int fd, err;

	if (request->size > PUSH_BODY_MAX || strlen(request->suffix) >= sizeof(message.suffix) ||
	    strlen(request->content_type) >= sizeof(message.content_type))
		return -E2BIG;
	/* What the process has not taken yet counts, too: it may be stopped. */
	if (push->handed_bytes - push->shared->taken_bytes + request->size > push->queue_max + PUSH_BODY_MAX)
		return -EAGAIN;
	snprintf(message.suffix, sizeof(message.suffix), "%s", request->suffix);
	snprintf(message.content_type, sizeof(message.content_type), "%s", request->content_type);
	fd = write_body(request);
	if (fd < 0)
		return fd;
	err = send_message(push->socket, &message, fd);
	close(fd);
	if (!err)
		push->handed_bytes += request->size;
	return err;
}

int push_send(struct push *push, const struct push_request *request)
{
	int err = hand_on(push, request);

	push->submitted++;
	if (err == -EAGAIN || err == -ETOOMANYREFS) {
		push->dropped[PUSH_QUEUE_FULL]++;
		return 0;
	}
	if (err)
		push->dropped[PUSH_ENDED]++;
	return err == -ECONNRESET ? -EPIPE : err;
}

static bool is_gone(const struct push *push)
{
	struct pollfd poll_socket = {.fd = push->socket};

	return poll(&poll_socket, 1, 0) == 1 && poll_socket.revents & (POLLHUP | POLLERR);
}

void push_count(const struct push *push, struct push_counts *counts)
{
	const struct push_shared *shared = push->shared;
	uint64_t settled = 0;

	*counts = (struct push_counts){
		.submitted = push->submitted,
		.found = shared->found,
		.sent = shared->sent,
		.sent_bytes = shared->sent_bytes,
		.retried = shared->retried,
		.rejected_profiles = shared->rejected_profiles,
		.waiting_bytes = shared->in_memory_bytes,
		.spooled = shared->spooled,
		.spooled_bytes = shared->spooled_bytes,
		.restarts = shared->restarts,
		.cpu_s = (double)(shared->cpu_ns + shared->ended_cpu_ns) / 1e9,
		.gone = is_gone(push),
	};
	for (int i = 0; i < PUSH_CAUSES; i++) {
		counts->dropped[i] = push->dropped[i] + shared->dropped[i];
		settled += counts->dropped[i];
	}
	settled += counts->sent + counts->spooled;
	if (counts->submitted + counts->found > settled)
		counts->waiting = counts->submitted + counts->found - settled;
	/* Nobody is there to send them. */
	if (counts->gone) {
		counts->dropped[PUSH_ENDED] += counts->waiting;
		counts->waiting = counts->waiting_bytes = 0;
	}
}

const char *push_cause_name(enum push_cause cause)
{
	static const char *const names[PUSH_CAUSES] = {
		[PUSH_QUEUE_FULL] = "queue_full", [PUSH_SPOOL_FULL] = "spool_full", [PUSH_SPOOL_ERROR] = "spool_error",
		[PUSH_GIVEN_UP] = "given_up",     [PUSH_REFUSED] = "refused",       [PUSH_NOT_TRUSTED] = "not_trusted",
		[PUSH_CRASHED] = "crashed",       [PUSH_ENDED] = "ended",
	};

	return names[cause];
}

uint64_t push_dropped(const struct push_counts *counts)
{
	uint64_t sum = 0;

	for (int i = 0; i < PUSH_CAUSES; i++)
		sum += counts->dropped[i];
	return sum;
}

int push_descriptor(const struct push *push)
{
	return push->socket;
}

/* Waits until the process has ended, or the time is up. */
static void wait_for_end(const struct push *push, uint64_t until_ns)
{
	while (!is_gone(push) && clock_ns(CLOCK_MONOTONIC) < until_ns) {
		struct pollfd poll_socket = {.fd = push->socket};

		poll(&poll_socket, 1, 100);
	}
}

void push_end(struct push **ended, double deadline_s, struct push_counts *counts)
{
	struct push *push = *ended;
	struct push_message message = {.kind = PUSH_END};
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!push)
		return;
	message.deadline_ns = now + (uint64_t)(deadline_s * 1e9);
	/* Where the message finds no place, the closed socket ends the process. */
	if (!send_message(push->socket, &message, -1))
		wait_for_end(push, message.deadline_ns + (uint64_t)(GRACE_S * 1e9));
	if (counts) {
		push_count(push, counts);
		counts->dropped[PUSH_ENDED] += counts->waiting;
		counts->waiting = 0;
	}
	free_push(push);
	*ended = NULL;
}
