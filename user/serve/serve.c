// SPDX-License-Identifier: Apache-2.0
/* The side that samples: starts the process, takes requests and answers them. */
#include "serve/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/child.h"
#include "child/message.h"
#include "serve/internal.h"

/* Seconds for which the process is waited for at the end: it sends for one. */
#define GRACE_S 3.0
/* For messages: "the process that ...". */
#define DOES "serves"

struct serve {
	struct child keeper;
	struct serve_shared *shared;
	char address[sizeof(((struct serve_listener *)NULL)->address)];
	struct serve_open open;
	bool crashed; /* and the open requests are being cancelled */
	bool gone;
	bool said_crashed;
};

void serve_end(struct serve **ended)
{
	struct serve *serve = *ended;

	if (!serve)
		return;
	child_end(&serve->keeper, GRACE_S);
	if (serve->shared)
		munmap(serve->shared, sizeof(*serve->shared));
	free(serve);
	*ended = NULL;
}

/* Says who may read profiles where that is more than their owner may expect. */
static void warn_of_readers(const struct serve_process *process, unsigned socket_mode)
{
	/* Who may write to a Unix socket may connect to it. */
	if (process->rules.token || (process->listener.is_unix && !(socket_mode & S_IWOTH)))
		return;
	if (process->listener.is_unix || process->listener.is_loopback)
		log_warn("every user of this machine can read profiles at %s; a token, or a Unix socket with mode "
			 "0600, keeps others out",
			 process->listener.address);
	else
		log_warn("everybody who reaches %s over the network can read profiles; a token keeps others out",
			 process->listener.address);
}

void serve_tell_well(struct serve *serve, bool is_ready)
{
	serve->shared->is_ready = is_ready;
	serve->shared->well_ns = clock_ns(CLOCK_MONOTONIC);
}

int serve_start(const struct serve_options *options, struct serve **started, struct error *error)
{
	struct serve_process process = {.listener.fd = -1};
	struct serve *serve = calloc(1, sizeof(*serve));
	char *token = NULL;
	int err;

	*started = NULL;
	if (!serve)
		return error_set(error, -ENOMEM, "cannot start the process that serves: out of memory");
	err = serve_token_read(options->token, &token, error);
	err = err ?: serve_listen(options, &process.listener, error);
	err = err ?: child_share_memory((void **)&serve->shared, sizeof(*serve->shared), DOES, error);
	/* It begins now. */
	if (!err)
		serve_tell_well(serve, false);
	process.shared = serve->shared;
	process.rules = (struct serve_rules){
		.token = token,
		.only_local_hosts = process.listener.is_loopback && !token,
		.seconds_most = options->seconds_most ?: SERVE_SECONDS_MOST_DEFAULT,
	};
	serve->open.seconds_most = process.rules.seconds_most;
	err = err ?: child_start(&serve->keeper, DOES, serve_keep, &process, error);
	if (!err)
		warn_of_readers(&process, options->socket_mode);
	memcpy(serve->address, process.listener.address, sizeof(serve->address));
	if (process.listener.fd >= 0)
		close(process.listener.fd);
	serve_token_free(token);
	if (err)
		serve_end(&serve);
	*started = serve;
	return err;
}

int serve_check(const struct serve_options *options, struct error *error)
{
	char *token = NULL;
	int err = serve_check_address(options->listen, error);

	err = err ?: serve_token_read(options->token, &token, error);
	serve_token_free(token);
	return err;
}

const char *serve_address(const struct serve *serve)
{
	return serve->address;
}

static void take_crash(struct serve *serve)
{
	serve->crashed = true;
	if (!serve->said_crashed)
		log_warn("the process that serves profiles at %s crashed, and is restarted; this is said once",
			 serve->address);
	serve->said_crashed = true;
}

int serve_next(struct serve *serve, struct serve_request *request)
{
	struct serve_message message;
	ssize_t n;

	/* A bounded number at a time: a process that was taken over may send nonsense without end. */
	for (int i = 0; i < 2 * SERVE_WAITING_MAX; i++) {
		if (serve->crashed && serve_open_cancel_one(&serve->open, request))
			return 1;
		serve->crashed = false;
		if (serve->gone)
			return -EPIPE;
		n = recv(serve->keeper.socket, &message, sizeof(message), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		/* Other errors pass, as that of no memory: the message is still there. */
		if (n < 0 && errno != ECONNRESET)
			return 0;
		if (n <= 0)
			serve->gone = serve->crashed = true;
		else if (n == sizeof(message) && message.kind == SERVE_MESSAGE_CRASH)
			take_crash(serve);
		else if (n == sizeof(message) && serve_open_take(&serve->open, &message, request))
			return 1;
	}
	return 0;
}

static int send_answer(const struct serve *serve, uint64_t id, const struct serve_answer *answer)
{
	struct serve_reply reply = {.id = id, .size = answer->size, .status = answer->status};
	int fd, err;

	if (snprintf(reply.content_type, sizeof(reply.content_type), "%s", answer->content_type) >=
	    (int)sizeof(reply.content_type))
		return -EINVAL;
	fd = child_write_memory_file("pybpf-answer", answer->body, answer->size);
	if (fd < 0)
		return fd;
	err = child_send(serve->keeper.socket, &reply, sizeof(reply), &fd, 1, MSG_DONTWAIT);
	close(fd);
	return err;
}

int serve_answer(struct serve *serve, uint64_t id, const struct serve_answer *answer)
{
	static const char too_large[] = "The profile is larger than 64 MiB; choose fewer seconds or processes.\n";
	const struct serve_answer apology = {.status = MHD_HTTP_SERVICE_UNAVAILABLE,
					     .content_type = "text/plain; charset=utf-8",
					     .body = too_large,
					     .size = sizeof(too_large) - 1};
	int err;

	if (!serve_open_close(&serve->open, id))
		return -ENOENT;
	err = send_answer(serve, id, answer->size > SERVE_BODY_MAX ? &apology : answer);
	return err ?: answer->size > SERVE_BODY_MAX ? -E2BIG : 0;
}

void serve_count(const struct serve *serve, struct serve_counts *counts)
{
	const struct serve_shared *shared = serve->shared;

	*counts = (struct serve_counts){
		.requests = shared->requests,
		.answered = shared->answered,
		.wrong = shared->wrong,
		.denied = shared->denied,
		.unavailable = shared->unavailable,
		.left = shared->left,
		.cut = shared->cut,
		.restarts = shared->restarts,
		.cpu_s = (double)(shared->cpu_ns + shared->ended_cpu_ns) / 1e9,
		.gone = serve->gone,
	};
}
