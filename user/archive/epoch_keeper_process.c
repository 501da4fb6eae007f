// SPDX-License-Identifier: Apache-2.0
/* The process that keeps a folder of epochs: its requests, and what it does between them. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "archive/clock.h"
#include "archive/epoch_keeper_protocol.h"
#include "base/clock.h"
#include "base/io.h"
#include "child/message.h"
#include "rights/priority.h"
#include "rights/rights.h"

/* Interval in ms between checks for epochs that have become too old. */
#define LOOK_MS 60000
/* Seconds for which parts stay after they were merged, so that readers that have listed them can still open them. */
#define PARTS_STAY_S 10
/* Merging takes at most this share of the time of a CPU. */
#define MERGE_SHARE 0.002
/* Interval between tries to remove parts. */
#define TRY_MS 1000
/* Bytes that are copied at a time. */
#define COPY_SIZE 65536

struct server {
	int fd;
	struct archive_store *store;
	struct archive_limits limits;
	struct archive_keeper_counts counts;
	bool retain_failed; /* which was reported; it is not tried again before the next epoch */
	double wait_until;  /* CLOCK_MONOTONIC seconds: nothing is merged or removed before */
	struct archive_clock clock;
};

/* Sends an answer, if the other process is still there. */
static void answer(struct server *s, struct keeper_answer *a)
{
	s->counts.kept = s->store->list.count;
	s->counts.size = archive_store_size(s->store);
	s->counts.cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	a->counts = s->counts;
	child_send(s->fd, a, sizeof(*a), NULL, 0, 0);
}

/* Copies a file from its start. Returns 0 or negative errno. */
static int copy(int from, int to)
{
	static char bytes[COPY_SIZE];
	ssize_t n = 1;
	int err = lseek(from, 0, SEEK_SET) < 0 ? -errno : 0;

	while (!err && n > 0) {
		n = read(from, bytes, sizeof(bytes));
		if (n < 0)
			err = -errno;
		else
			err = io_write(to, bytes, (size_t)n);
	}
	return err;
}

/* Writes an epoch to the folder. Returns 0 or negative errno. */
static int write_epoch(struct archive_store *store, const struct archive_span *span, int from)
{
	struct archive_file file;
	int err = archive_store_make(store, &file);

	err = err ?: copy(from, file.fd);
	err = err ?: archive_store_commit(store, &file, span);
	archive_store_discard(store, &file);
	return err;
}

static void take_epoch(struct server *s, const struct archive_span *span, int from)
{
	struct keeper_answer a = {.kind = KEEPER_DONE};
	int err = from < 0 ? -EPROTO : write_epoch(s->store, span, from);

	if (err)
		error_set(&a.error, err, "cannot write an epoch: %s; its samples are lost", strerror(-err));
	else
		s->counts.written_bytes += s->store->list.epochs[s->store->list.count - 1].size;
	s->counts.written += !err;
	s->counts.failed += err != 0;
	s->retain_failed = false;
	answer(s, &a);
}

/* Receives one request and does it. Returns whether there was one: those that a process has sent outlive it. */
static bool serve(struct server *s)
{
	struct keeper_request request;
	int fd;
	bool there = child_receive(s->fd, &request, sizeof(request), &fd, 1, 0) == (ssize_t)sizeof(request);

	if (there && request.kind == KEEPER_LIMIT) {
		request.limits.merge_from = s->limits.merge_from;
		s->limits = request.limits;
	} else if (there) {
		take_epoch(s, &request.span, fd);
	}
	if (fd >= 0)
		close(fd);
	return there;
}

static void begin_clock(struct server *s)
{
	uint64_t newest_end_ms = 0;

	if (s->store->list.count) {
		const struct archive_span *newest = &s->store->list.epochs[s->store->list.count - 1].span;

		newest_end_ms = newest->begin_ms + newest->length_ms;
	}
	archive_clock_begin(&s->clock, newest_end_ms, clock_ns(CLOCK_REALTIME) / 1000000,
			    clock_ns(CLOCK_BOOTTIME) / 1000000);
}

/* Returns the time by which epochs are too old. */
static uint64_t believe_clock(struct server *s)
{
	return archive_clock_now_ms(&s->clock, clock_ns(CLOCK_REALTIME) / 1000000, clock_ns(CLOCK_BOOTTIME) / 1000000);
}

/* Merges or removes epochs once, if the limits ask for it. Returns whether there may be more to do. */
static bool retain(struct server *s)
{
	struct keeper_answer a = {.kind = KEEPER_REPORT};
	const double cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	size_t before = s->store->list.count;
	bool has_merged;
	double pause;
	int done;

	if (s->retain_failed || clock_s(CLOCK_MONOTONIC) < s->wait_until)
		return false;
	done = archive_store_retain(s->store, &s->limits, believe_clock(s), &a.error);
	has_merged = done == 1 && s->store->list.count > before;
	s->counts.merged += has_merged;
	if (has_merged || done < 0) {
		pause = (clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s) / MERGE_SHARE;
		s->wait_until = clock_s(CLOCK_MONOTONIC) + (pause > PARTS_STAY_S ? pause : PARTS_STAY_S);
	}
	if (done == 1 && s->store->list.count < before)
		s->counts.removed++;
	s->retain_failed = done < 0;
	if (done)
		answer(s, &a);
	return done == 1;
}

/* Keeps stderr, the socket and the folder: others are those of the process that was forked. */
static int give_up_rights(struct server *s, struct error *error)
{
	const struct rights_wanted wanted = {.level = RIGHTS_KEEP, .folders = &s->store->folder, .nr_folders = 1};
	int kept[] = {s->fd, s->store->folder};
	int err = child_let_go(STDOUT_FILENO, kept, sizeof(kept) / sizeof(*kept));

	if (err)
		return error_set(error, err, "cannot prepare the process that keeps the epochs: %s", strerror(-err));
	return rights_drop(&wanted, error);
}

static void work(struct server *s)
{
	struct pollfd wait = {.fd = s->fd, .events = POLLIN};
	struct keeper_answer begun = {.kind = KEEPER_REPORT};
	bool busy = true, there = true;

	begin_clock(s);
	answer(s, &begun);
	while (there) {
		bool soon = s->wait_until > clock_s(CLOCK_MONOTONIC);
		int n = poll(&wait, 1, busy ? 0 : soon ? TRY_MS : LOOK_MS);

		if (n > 0)
			there = serve(s);
		else if (n < 0 && errno != EINTR)
			there = false;
		busy = there && retain(s);
	}
}

void keeper_run(int fd, void *state)
{
	const struct keeper_begin *begin = state;
	struct server s = {.fd = fd, .store = begin->store, .limits = begin->limits};
	struct error error = {.code = 0};

	prctl(PR_SET_NAME, "pybpf-keeper");
	priority_restore();
	/* When Ctrl-C or SIGTERM ends the other process, its last epoch is still to be written. */
	child_block_signals();
	/* It reads the time zone from a file, which is out of reach later. */
	tzset();
	if (!give_up_rights(&s, &error))
		archive_store_begin(s.store, &error);
	if (child_say_begun(fd, &error))
		work(&s);
	archive_store_close(s.store);
}
