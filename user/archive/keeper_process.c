// SPDX-License-Identifier: Apache-2.0
/* The process that keeps a folder of epochs: its requests, and what it does between them. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "archive/keeper_protocol.h"
#include "base/clock.h"
#include "child/message.h"
#include "rights/priority.h"
#include "rights/rights.h"

/* Interval between looks at what has become too old. */
#define LOOK_MS 60000
/* Seconds for which parts stay after they were merged: a reader that has listed them before has opened them by then. */
#define PARTS_STAY_S 10
/* Merging takes at most this share of the time of a CPU. */
#define MERGE_SHARE 0.002
/* Interval between tries to make a file where that failed, and to remove parts. */
#define TRY_MS 1000

struct server {
	int fd;
	struct archive_store *store;
	struct archive_limits limits;
	/* Files that were handed out, in the order in which they come back. */
	struct archive_file files[ARCHIVE_KEEPER_FILES];
	size_t nr_files;
	struct archive_keeper_counts counts;
	bool retain_failed; /* it was said; no further try before the next epoch */
	bool make_failed;   /* it was said; it is tried again */
	double wait_until;  /* CLOCK_MONOTONIC seconds: no step before */
};

/* Sends an answer, with a descriptor if it is not -1. Returns whether the other process is still there. */
static bool answer(struct server *s, struct keeper_answer *a, int descriptor)
{
	s->counts.kept = s->store->list.count;
	s->counts.size = archive_store_size(s->store);
	s->counts.cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	a->counts = s->counts;
	return !child_send(s->fd, a, sizeof(*a), &descriptor, descriptor >= 0, 0);
}

/* Hands out files until there are enough of them. Returns whether the other process is still there. */
static bool hand_out(struct server *s)
{
	while (s->nr_files < ARCHIVE_KEEPER_FILES) {
		struct keeper_answer a = {.kind = KEEPER_FILE};
		struct archive_file *file = &s->files[s->nr_files];
		int err = archive_store_make(s->store, file);

		if (err && s->make_failed)
			return true;
		s->make_failed = err != 0;
		if (err) {
			a.kind = KEEPER_TOLD;
			error_set(&a.error, err, "cannot make a file for the next epoch: %s", strerror(-err));
			return answer(s, &a, -1);
		}
		s->nr_files++;
		if (!answer(s, &a, file->fd))
			return false;
	}
	return true;
}

/* Ends the file that was handed out first. */
static bool end_file(struct server *s, const struct keeper_request *request)
{
	struct keeper_answer a = {.kind = KEEPER_DONE};
	struct archive_file file = {.fd = -1};
	int err = -EPROTO;

	if (s->nr_files) {
		file = s->files[0];
		memmove(s->files, s->files + 1, --s->nr_files * sizeof(*s->files));
	}
	if (request->kind == KEEPER_COMMIT && file.fd >= 0) {
		err = archive_store_commit(s->store, &file, &request->span);
		if (err)
			error_set(&a.error, err, "cannot write an epoch: %s; its samples are lost", strerror(-err));
	}
	archive_store_discard(s->store, &file);
	s->counts.written += !err;
	s->counts.failed += err != 0;
	if (!err)
		s->counts.written_bytes += s->store->list.epochs[s->store->list.count - 1].size;
	s->retain_failed = false;
	return answer(s, &a, -1);
}

static bool serve(struct server *s)
{
	struct keeper_request request;

	if (recv(s->fd, &request, sizeof(request), 0) != (ssize_t)sizeof(request))
		return false;
	if (request.kind != KEEPER_LIMIT)
		return end_file(s, &request);
	request.limits.merge_from = s->limits.merge_from;
	s->limits = request.limits;
	return true;
}

/* Takes one step to the limits. Returns whether there may be more to do. */
static bool retain(struct server *s)
{
	struct keeper_answer a = {.kind = KEEPER_TOLD};
	const double cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	size_t before = s->store->list.count;
	double pause;
	int done;

	if (s->retain_failed || clock_s(CLOCK_MONOTONIC) < s->wait_until)
		return false;
	done = archive_store_retain(s->store, &s->limits, clock_ns(CLOCK_REALTIME) / 1000000, &a.error);
	if (done == 1 && s->store->list.count > before) {
		s->counts.merged++;
		pause = (clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s) / MERGE_SHARE;
		s->wait_until = clock_s(CLOCK_MONOTONIC) + (pause > PARTS_STAY_S ? pause : PARTS_STAY_S);
	}
	if (done == 1 && s->store->list.count < before)
		s->counts.removed++;
	s->retain_failed = done < 0;
	if (done)
		answer(s, &a, -1);
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
	bool busy = true, there = true;

	while (there && hand_out(s)) {
		bool soon = s->make_failed || s->wait_until > clock_s(CLOCK_MONOTONIC);
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

	priority_restore();
	/* Its last epoch is still to come when Ctrl-C or SIGTERM end the other process. */
	child_block_signals();
	/* It reads a file, once. */
	tzset();
	if (!give_up_rights(&s, &error))
		archive_store_begin(s.store, &error);
	if (child_say_begun(fd, &error))
		work(&s);
	for (size_t i = 0; i < s.nr_files; i++)
		archive_store_discard(s.store, &s.files[i]);
	archive_store_close(s.store);
}
