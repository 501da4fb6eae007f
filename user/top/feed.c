// SPDX-License-Identifier: Apache-2.0
/* From a rolling session to the model. */
#include "top/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "profile/edit.h"
#include "session/sched.h"

/* The profile of all intervals begins anew when it has so many stacks: some 100 bytes each, with their frames. */
#define ALL_STACKS_MAX 200000
#define NS_PER_S       1000000000ull

/* A thread at the end of the interval before. */
struct met_thread {
	int32_t pid, tid;
	uint64_t start_ticks;
	uint64_t at_ns; /* CLOCK_BOOTTIME */
	struct procfs_sched sched;
	uint32_t interval; /* in which it was met last */
};

void top_feed_free(struct top_feed *feed)
{
	profile_free(feed->all);
	intern_free(&feed->threads);
	free(feed->source_file);
	free(feed->source);
	*feed = (struct top_feed){0};
}

/* Keeps the profile for what shows stacks. */
static int keep(struct top_feed *feed, const struct profile *profile)
{
	struct error error;

	if (profile_stack_count(feed->all) > ALL_STACKS_MAX) {
		struct profile *fresh = profile_new();

		if (!fresh)
			return -ENOMEM;
		profile_free(feed->all);
		feed->all = fresh;
		feed->all_since = feed->since;
	}
	return profile_edit_add(feed->all, profile, NULL, &error);
}

static int take(const struct profile *profile, void *arg)
{
	struct top_feed *feed = arg;

	return top_model_add(feed->model, profile) ?: keep(feed, profile);
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* What a thread has done since the interval before, or since it began. */
static struct top_states states_of(const struct session_sched_thread *thread, const struct met_thread *before,
				   uint64_t interval_ns)
{
	static const struct procfs_sched none;
	const struct procfs_sched *from = before ? &before->sched : &none;
	uint64_t ticks_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t elapsed = since(thread->at_ns, before ? before->at_ns : thread->start_ticks * ticks_ns);
	struct top_states states = {0};

	/* One that is met for the first time at the start had its counts before. */
	if (!before && elapsed > interval_ns)
		return states;
	states.running = since(thread->sched.running_ns, from->running_ns);
	states.queued = since(thread->sched.queued_ns, from->queued_ns);
	if (states.running > elapsed)
		states.running = elapsed;
	if (states.queued > elapsed - states.running)
		states.queued = elapsed - states.running;
	states.asleep = elapsed - states.running - states.queued;
	return states;
}

static struct met_thread as_it_is(const struct session_sched_thread *thread)
{
	return (struct met_thread){.pid = thread->pid,
				   .tid = thread->tid,
				   .start_ticks = thread->start_ticks,
				   .at_ns = thread->at_ns,
				   .sched = thread->sched};
}

/* Keeps what a thread had done before the first interval. */
static int meet_thread(const struct session_sched_thread *thread, void *arg)
{
	struct top_feed *feed = arg;
	struct met_thread now = as_it_is(thread);
	bool fresh;

	return intern_add(&feed->threads, &now, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

int top_feed_init(struct top_feed *feed, struct session *session, struct top_model *model, uint64_t max_stacks)
{
	*feed = (struct top_feed){.session = session,
				  .model = model,
				  .all = profile_new(),
				  .max_stacks = max_stacks,
				  .begin = clock_s(CLOCK_MONOTONIC)};
	feed->since = feed->all_since = feed->begin;
	intern_init(&feed->threads, sizeof(struct met_thread), offsetof(struct met_thread, at_ns));
	return feed->all ? session_sched_visit(session, meet_thread, feed) : -ENOMEM;
}

static int add_thread(const struct session_sched_thread *thread, void *arg)
{
	struct top_feed *feed = arg;
	struct met_thread now = as_it_is(thread);
	uint64_t interval_ns = (uint64_t)((clock_s(CLOCK_MONOTONIC) - feed->since) * 1e9);
	struct top_states states;
	struct met_thread *met;
	bool fresh;
	uint32_t i = intern_add(&feed->threads, &now, &fresh);

	if (i == INTERN_NONE)
		return -ENOMEM;
	met = intern_item(&feed->threads, i);
	states = states_of(thread, fresh ? NULL : met, interval_ns);
	now.interval = top_model_intervals(feed->model);
	*met = now;
	return top_model_add_thread(feed->model, thread->pid, thread->tid, thread->comm, &states);
}

/* Forgets the threads that have ended. */
static void forget_ended(struct top_feed *feed)
{
	for (uint32_t i = feed->threads.count; i-- > 0;) {
		const struct met_thread *thread = intern_item(&feed->threads, i);

		if (thread->interval != top_model_intervals(feed->model))
			intern_remove(&feed->threads, i);
	}
}

static int add_threads(struct top_feed *feed)
{
	int err = session_sched_visit(feed->session, add_thread, feed);

	forget_ended(feed);
	return err;
}

static int begin(struct top_feed *feed, const struct session_account *account)
{
	const struct session_account *before = &feed->account;
	const struct top_sums sums = {
		.duration_s = clock_s(CLOCK_MONOTONIC) - feed->since,
		.asked = since(account->counters[PYBPF_COUNT_ASKED], before->counters[PYBPF_COUNT_ASKED]),
		.lost = since(account->lost, before->lost)};

	feed->account = *account;
	return top_model_begin(feed->model, &sums);
}

int top_feed_interval(struct top_feed *feed)
{
	struct session_account account;
	uint64_t samples, stacks;
	int err = session_count_samples(feed->session, &account) ?: begin(feed, &account);

	session_progress(feed->session, &samples, &stacks);
	/* It reports its errors. */
	if (!err && session_end_epoch(feed->session, stacks * 2 > feed->max_stacks, take, feed))
		return -EIO;
	err = err ?: add_threads(feed) ?: top_model_end(feed->model);
	feed->since = clock_s(CLOCK_MONOTONIC);
	if (err)
		log_error("cannot count what was sampled: %s", strerror(-err));
	return err;
}

int top_feed_finish(struct top_feed *feed, const struct profile *profile, const struct session_account *account)
{
	/* Its measure is complete, and those of the epochs before were not. */
	const struct profile_measure measure = profile_get_measure(profile);
	int err = profile_set_measure(feed->all, &measure) ?: begin(feed, account);

	err = err ?: take(profile, feed) ?: add_threads(feed) ?: top_model_end(feed->model);

	feed->since = clock_s(CLOCK_MONOTONIC);
	feed->finished = true;
	return err;
}

struct profile *top_feed_profile(const struct top_feed *feed)
{
	/* The account is of the whole run: what was begun anew since has none. */
	struct session_account account = {.source = feed->account.source, .freq = feed->account.freq};
	struct profile *out = profile_new();
	struct error error;

	if (feed->all_since <= feed->begin)
		account = feed->account;
	account.duration_s = feed->since - feed->all_since;
	if (out && !profile_edit_add(out, feed->all, NULL, &error) &&
	    !session_describe_epochs(feed->session, feed->finished ? NULL : &account, out))
		return out;
	profile_free(out);
	return NULL;
}

const char *top_feed_source(struct top_feed *feed, const char *file)
{
	if (!file || (feed->source_file && !strcmp(feed->source_file, file)))
		return file ? feed->source : NULL;
	free(feed->source_file);
	free(feed->source);
	feed->source_file = strdup(file);
	feed->source = session_read_source(feed->session, file);
	return feed->source;
}
