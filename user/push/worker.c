// SPDX-License-Identifier: Apache-2.0
/*
 * The process that has the network. It receives bodies, sends the oldest one first and one at a time, and keeps the
 * others: in memory, then in the spool. A body that the receiver does not take keeps the others waiting for retry_s
 * seconds, and then others have their turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/text_stream.h"
#include "child/message.h"
#include "push/internal.h"

/* Longest wait if there is nothing to do, in s. */
#define IDLE_S 3600.0
/* Until memory is asked for once more, in s. */
#define MEMORY_WAIT_S 1.0

struct worker {
	struct push_process *process;
	struct push_shared *shared;
	struct push_spool *spool;
	struct push_transfer transfer;
	struct push_queue queue;
	struct push_body *current; /* that is sent, or waits for its next attempt */
	double next_try_s;         /* CLOCK_MONOTONIC */
	unsigned failures;         /* attempts since the last one that was taken or refused */
	bool memory_next;          /* the last body was left: one in memory is the next, before those of the spool */
	double next_receive_s;     /* there was no memory for a message: until then none is asked for */
	bool ends;
	double deadline_s; /* if it ends */
	/* What was reported already. */
	bool said_failing, said_refused, said_rejected, said_spool;
};

static double now_s(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

static double random_share(void)
{
	uint32_t bits = 0;

	if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		return 1;
	return bits / ((double)UINT32_MAX + 1);
}

/* The URL without its query, which may be secret. */
#define SHOWN(w) (int)strcspn((w)->process->url, "?"), (w)->process->url

static void drop(struct worker *w, struct push_body *body, enum push_cause cause)
{
	w->shared->dropped[cause]++;
	push_body_free(body);
}

/* Makes the shared counts those of now. */
static void publish(struct worker *w)
{
	const bool in_memory = w->current && (!w->current->spool_sequence || w->spool->lent_gone);

	w->shared->dropped[PUSH_SPOOL_FULL] += w->spool->dropped_full;
	w->shared->dropped[PUSH_SPOOL_ERROR] += w->spool->dropped_error;
	if (w->spool->dropped_error && !w->said_spool) {
		log_warn("a profile that could not be sent is lost: it could not be put into the spool, or the spool "
			 "was damaged: %s",
			 strerror(-w->spool->last_error));
		w->said_spool = true;
	}
	w->spool->dropped_full = w->spool->dropped_error = 0;
	w->shared->in_memory = w->queue.count + in_memory;
	w->shared->in_memory_bytes = w->queue.bytes + (in_memory ? w->current->message.size : 0);
	w->shared->spooled = w->spool->count;
	w->shared->spooled_bytes = w->spool->bytes;
	w->shared->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Moves a body from memory to the spool; where there is no spool, the body is dropped for the cause. */
static void put_aside(struct worker *w, struct push_body *body, enum push_cause cause)
{
	/* All but the first of these errors are counted by the spool. */
	if (push_spool_put(w->spool, body) == -ENOENT)
		drop(w, body, cause);
	else
		push_body_free(body);
}

/* Compresses a body's bytes. Returns 0 or -ENOMEM. */
static int compress_body(struct push_body *body)
{
	char *packed = NULL;
	size_t size = 0;
	FILE *out = text_stream_open(&packed, &size), *gzip = out ? gzip_open(out) : NULL;
	bool whole = gzip && fwrite(body->bytes, 1, body->message.size, gzip) == body->message.size;

	if (gzip && fclose(gzip))
		whole = false;
	if (out && fclose(out))
		whole = false;
	if (!whole) {
		free(packed);
		return -ENOMEM;
	}
	free(body->bytes);
	body->bytes = packed;
	body->message.size = size;
	return 0;
}

/* Makes a body of a message and the file that came with it. Returns NULL without memory, or for a short file. */
static struct push_body *read_body(const struct push_message *message, int fd)
{
	struct push_body *body = message->size <= PUSH_BODY_MAX ? calloc(1, sizeof(*body)) : NULL;
	size_t done = 0;
	ssize_t n = 1;

	if (body)
		body->bytes = malloc(message->size + 1);
	while (body && body->bytes && n > 0 && done < message->size) {
		n = pread(fd, body->bytes + done, message->size - done, (off_t)done);
		done += n > 0 ? (size_t)n : 0;
	}
	if (!body || !body->bytes || done < message->size) {
		push_body_free(body);
		return NULL;
	}
	body->message = *message;
	if (!message->compress || !compress_body(body))
		return body;
	push_body_free(body);
	return NULL;
}

/* Takes a body. fd: -1: there was no descriptor left for its file, or no memory. */
static void take_body(struct worker *w, const struct push_message *message, int fd)
{
	struct push_body *body;

	/* Before what follows, in which this process may be killed: nobody else knows of the body any more. */
	w->shared->taken_bytes += message->size;
	w->shared->in_memory++;
	body = read_body(message, fd);
	if (!body) {
		w->shared->dropped[PUSH_QUEUE_FULL]++;
		return;
	}
	push_queue_append(&w->queue, body);
	while (w->queue.bytes > w->process->queue_max)
		put_aside(w, push_queue_take(&w->queue), PUSH_QUEUE_FULL);
}

/* Receives one message. Returns whether there was one. */
static bool receive(struct worker *w)
{
	static struct push_message message;
	int fd;
	ssize_t n = child_receive(w->process->socket, &message, sizeof(message), &fd, 1, MSG_DONTWAIT);

	if (n == sizeof(message) && message.kind == PUSH_BODY) {
		take_body(w, &message, fd);
		if (fd >= 0)
			close(fd);
	} else if (n == sizeof(message) || !n || n == -ECONNRESET) {
		/* Without a message to end, the process that pushes has died: nothing more comes, and nobody waits. */
		w->ends = true;
		w->deadline_s = n == sizeof(message) ? (double)message.deadline_ns / 1e9 : now_s();
	} else if (n != -EAGAIN) {
		/* The kernel has no memory: the message stays where it is. */
		w->next_receive_s = now_s() + MEMORY_WAIT_S;
	}
	return n > 0 && !w->ends;
}

/* Ends with the current body, which was sent, or lost for the cause. */
static void settle(struct worker *w, bool sent, enum push_cause cause)
{
	struct push_body *body = w->current;

	if (body->spool_sequence)
		push_spool_done(w->spool);
	w->shared->dropped[PUSH_GIVEN_UP] += push_spool_judge_left(w->spool, sent && !body->attempts);
	w->current = NULL;
	w->failures = 0;
	w->next_try_s = 0;
	if (sent) {
		w->shared->sent++;
		w->shared->sent_bytes += body->message.size;
	} else {
		w->shared->dropped[cause]++;
	}
	push_body_free(body);
}

/* Leaves the current body, which was not sent. One of the spool stays there, and is tried again after others. */
static void leave(struct worker *w, enum push_cause cause)
{
	struct push_body *body = w->current;

	w->current = NULL;
	w->memory_next = true;
	if (!body->spool_sequence) {
		put_aside(w, body, cause);
		return;
	}
	push_spool_keep(w->spool);
	push_body_free(body);
}

static void try_later(struct worker *w, const struct push_outcome *outcome)
{
	double now = now_s();

	w->current->attempts++;
	w->next_try_s = now + push_wait_s(++w->failures, outcome->retry_after_s, random_share());
	if (!w->said_failing && outcome->verdict == PUSH_DENIED)
		log_warn("cannot send to %.*s: %s; the spool keeps it; restart the agent once its token is valid",
			 SHOWN(w), outcome->text);
	else if (!w->said_failing)
		log_warn("cannot send to %.*s: %s; trying again for %g s", SHOWN(w), outcome->text,
			 w->process->retry_s);
	w->said_failing = true;
	if (w->next_try_s > w->current->first_s + w->process->retry_s) {
		w->next_try_s = w->next_try_s > now + w->process->retry_s ? now + w->process->retry_s : w->next_try_s;
		/* The next attempts are another body's. */
		leave(w, outcome->verdict == PUSH_DENIED ? PUSH_REFUSED : PUSH_GIVEN_UP);
	} else {
		w->shared->retried++;
	}
}

static void tell_sent(struct worker *w, const struct push_outcome *outcome)
{
	if (w->said_failing)
		log_warn("%.*s takes profiles again", SHOWN(w));
	w->said_failing = false;
	if (outcome->rejected && !w->said_rejected) {
		log_warn("%.*s rejected %llu profiles of what it took: %s; this is said once", SHOWN(w),
			 (unsigned long long)outcome->rejected, outcome->text);
		w->said_rejected = true;
	}
}

static void handle(struct worker *w, const struct push_outcome *outcome)
{
	/* Secrets are read at the start: what the spool keeps is sent with those of the next one. */
	if (outcome->verdict == PUSH_AGAIN || (outcome->verdict == PUSH_DENIED && w->spool->files[0] >= 0)) {
		try_later(w, outcome);
		return;
	}
	if (outcome->verdict == PUSH_TAKEN) {
		tell_sent(w, outcome);
		w->shared->rejected_profiles += outcome->rejected;
	} else if (!w->said_refused) {
		log_warn("cannot send to %.*s: %s; it is not tried again, and this is said once", SHOWN(w),
			 outcome->text);
		w->said_refused = true;
	}
	settle(w, outcome->verdict == PUSH_TAKEN, outcome->verdict == PUSH_UNTRUSTED ? PUSH_NOT_TRUSTED : PUSH_REFUSED);
}

/*
 * Returns the next body, or NULL. Those of the spool are older than those in memory. At the end, what is in the spool
 * stays there.
 */
static struct push_body *take_next(struct worker *w)
{
	const bool from_memory = w->ends || (w->memory_next && w->queue.count);
	struct push_body *body = from_memory ? NULL : push_spool_get(w->spool);

	w->memory_next = false;
	return body ?: push_queue_take(&w->queue);
}

/* Begins the next attempt if it is time for one. */
static void begin(struct worker *w)
{
	struct push_outcome outcome = {.verdict = PUSH_AGAIN};

	if (w->transfer.runs || now_s() < w->next_try_s)
		return;
	if (!w->current)
		w->current = take_next(w);
	if (!w->current) {
		/* There is no memory for a body of the spool. */
		if (w->spool->count && !w->ends)
			w->next_try_s = now_s() + MEMORY_WAIT_S;
		return;
	}
	if (w->current->first_s == 0)
		w->current->first_s = now_s();
	if (push_transfer_begin(&w->transfer, w->current)) {
		snprintf(outcome.text, sizeof(outcome.text), "%s", w->transfer.error);
		try_later(w, &outcome);
	}
}

/* Returns whether nothing is left to do, or no time for it. */
static bool is_over(const struct worker *w)
{
	const bool waits = w->current && !w->transfer.runs;

	if (!w->ends)
		return false;
	if (!w->queue.count && (!w->current || (w->current->spool_sequence && !w->transfer.runs)))
		return true;
	return now_s() >= w->deadline_s || ((waits || !w->current) && w->next_try_s > w->deadline_s);
}

static bool may_receive(const struct worker *w)
{
	return !w->ends && now_s() >= w->next_receive_s;
}

static double wait_for_s(const struct worker *w)
{
	double until = now_s() + IDLE_S;

	if (!w->transfer.runs && (w->current || w->queue.count || w->spool->count))
		until = w->next_try_s;
	if (w->ends && w->deadline_s < until)
		until = w->deadline_s;
	if (!w->ends && !may_receive(w) && w->next_receive_s < until)
		until = w->next_receive_s;
	return until - now_s();
}

static void __attribute__((noreturn)) end(struct worker *w)
{
	if (w->current)
		leave(w, PUSH_ENDED);
	while (w->queue.count)
		put_aside(w, push_queue_take(&w->queue), PUSH_ENDED);
	publish(w);
	/* Without the clean-up of libraries, which may wait for a name server. */
	_exit(0);
}

/* Returns 0, or negative errno after reporting it. */
static int prepare(struct worker *w)
{
	int err = push_spool_scan(w->spool);

	if (err) {
		log_error("cannot send profiles: the spool cannot be read: %s", strerror(-err));
		return err;
	}
	err = push_transfer_init(&w->transfer, w->process);
	if (err)
		log_error("cannot send profiles: libcurl cannot be prepared: %s", strerror(-err));
	return err;
}

void push_work(struct push_process *process)
{
	static struct worker w;
	struct push_outcome outcome;

	w = (struct worker){.process = process, .shared = process->shared, .spool = &process->spool};
	push_queue_init(&w.queue);
	if (prepare(&w))
		_exit(1);
	if (!w.shared->restarts)
		w.shared->found = w.spool->count + w.spool->dropped_error;
	while (true) {
		publish(&w);
		if (is_over(&w))
			end(&w);
		begin(&w);
		if (w.transfer.runs && push_transfer_step(&w.transfer, &outcome)) {
			handle(&w, &outcome);
			continue;
		}
		if (push_transfer_wait(&w.transfer, may_receive(&w) ? process->socket : -1, wait_for_s(&w))) {
			while (receive(&w))
				publish(&w);
		}
	}
}
