// SPDX-License-Identifier: Apache-2.0
/* The side that pushes: starts the process, hands it bodies, and counts. */
#include "push/push.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/child.h"
#include "child/message.h"
#include "network/network.h"
#include "push/internal.h"

/* Seconds beyond its deadline for which the process is waited for. */
#define GRACE_S 2.0
/* For messages: "the process that ...". */
#define DOES "sends"

struct push {
	struct child keeper;
	struct push_shared *shared;
	uint64_t queue_max;
	/* What this side counts: bodies submitted, those that were not handed on, by cause, and bytes handed on. */
	uint64_t submitted, dropped[PUSH_CAUSES], handed_bytes;
};

int push_check(const struct push_options *options, struct error *error)
{
	struct push_secrets secrets;
	int err = network_check_url(options->url, error);

	if (err)
		return err;
	err = push_secrets_read(&secrets, options, error);
	push_secrets_free(&secrets);
	return err;
}

static void free_push(struct push *push)
{
	child_end(&push->keeper, GRACE_S);
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
	push->queue_max = process.queue_max;
	err = network_check_url(options->url, error);
	err = err ?: push_secrets_read(&process.secrets, options, error);
	err = err
		      ?: push_spool_open(&process.spool, options->spool, options->spool_max ?: PUSH_SPOOL_MAX_DEFAULT,
					 error);
	err = err ?: child_share_memory((void **)&push->shared, sizeof(*push->shared), DOES, error);
	process.shared = push->shared;
	err = err ?: child_start(&push->keeper, DOES, push_keep, &process, error);
	push_spool_close(&process.spool);
	push_secrets_free(&process.secrets);
	if (err)
		free_push(push);
	else
		*started = push;
	return err;
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
	fd = child_write_memory_file("pybpf-profile", request->body, request->size);
	if (fd < 0)
		return fd;
	err = child_send(push->keeper.socket, &message, sizeof(message), &fd, 1, MSG_DONTWAIT);
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
	struct pollfd poll_socket = {.fd = push->keeper.socket};

	if (!push->keeper.pid)
		return true;
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

/* Waits until the process has ended, or the time is up. */
static void wait_for_end(const struct push *push, uint64_t until_ns)
{
	while (!is_gone(push) && clock_ns(CLOCK_MONOTONIC) < until_ns) {
		struct pollfd poll_socket = {.fd = push->keeper.socket};

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
	/* If the socket's queue is full, the closed socket ends the process. */
	if (!child_send(push->keeper.socket, &message, sizeof(message), NULL, 0, MSG_DONTWAIT))
		wait_for_end(push, message.deadline_ns + (uint64_t)(GRACE_S * 1e9));
	/* It may still put bodies into the spool. */
	child_end(&push->keeper, GRACE_S);
	if (counts)
		push_count(push, counts);
	free_push(push);
	*ended = NULL;
}
