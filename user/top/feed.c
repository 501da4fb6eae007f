// SPDX-License-Identifier: Apache-2.0
/* From a rolling session to the model. */
#include "top/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/beyond.h"
#include "base/clock.h"
#include "base/log.h"
#include "profile/edit.h"

/* The profile of all intervals begins anew when it has this number of stacks: some 100 bytes each, with their frames.
 */
#define ALL_STACKS_MAX 200000

void top_feed_free(struct top_feed *feed)
{
	profile_free(feed->all);
	profile_free(feed->held);
	top_threads_free(&feed->threads);
	free(feed->source_file);
	free(feed->source);
	*feed = (struct top_feed){0};
}

/* Keeps the profile for what shows stacks. */
static int keep(struct top_feed *feed, const struct profile *profile)
{
	struct profile_edit edit = {.no_account = false};
	struct error error;

	if (profile_stack_count(feed->all) > ALL_STACKS_MAX) {
		struct profile *fresh = profile_new();

		if (!fresh)
			return -ENOMEM;
		profile_free(feed->all);
		feed->all = fresh;
		feed->all_since = feed->before;
	}
	/* The last one has the account of the whole run. */
	edit.no_account = feed->all_since > feed->begin;
	return profile_edit_add(feed->all, profile, &edit, &error);
}

static int take(const struct profile *profile, void *arg)
{
	const struct profile_edit edit = {.own_only = true};
	struct top_feed *feed = arg;
	struct profile *own = feed->own_only ? profile_new() : NULL;
	struct error error;
	int err;

	if (!feed->own_only)
		return top_model_add(feed->model, profile) ?: keep(feed, profile);
	err = own ? profile_edit_add(own, profile, &edit, &error) : -ENOMEM;
	err = err ?: top_model_add(feed->model, own) ?: keep(feed, own);
	profile_free(own);
	return err;
}

/* Takes what was held back; none of it again, also if that fails. */
static int take_held(struct top_feed *feed)
{
	struct profile *held = feed->held;
	int err = held ? take(held, feed) : 0;

	feed->held = NULL;
	profile_free(held);
	return err;
}

static int hold(const struct profile *profile, void *arg)
{
	struct top_feed *feed = arg;
	struct error error;

	feed->held = feed->held ?: profile_new();
	return feed->held ? profile_edit_add(feed->held, profile, NULL, &error) : -ENOMEM;
}

int top_feed_hold(struct top_feed *feed)
{
	/* Beyond, samples are lost, and counted, as memory is bounded. */
	if (!session_is_half_full(feed->session) || (feed->held && profile_stack_count(feed->held) > ALL_STACKS_MAX))
		return 0;
	/* It reports its errors. */
	return session_end_epoch(feed->session, true, hold, feed) ? -EIO : 0;
}

int top_feed_init(struct top_feed *feed, struct session *session, struct top_model *model, bool own_only)
{
	*feed = (struct top_feed){.session = session,
				  .model = model,
				  .all = profile_new(),
				  .own_only = own_only,
				  .begin = session_get_begin(session)};
	feed->since = feed->all_since = feed->begin;
	return feed->all ? top_threads_init(&feed->threads, session, model) : -ENOMEM;
}

/* Begins the model's interval that ends now. */
static int begin(struct top_feed *feed, double now)
{
	int err = top_model_begin(feed->model, now - feed->since);

	feed->before = feed->since;
	feed->since = now;
	return err ?: top_threads_add(&feed->threads);
}

static void count(struct top_feed *feed, const struct session_account *account)
{
	const struct session_account *before = &feed->account;

	top_model_count(feed->model, beyond(account->counters[PYBPF_COUNT_ASKED], before->counters[PYBPF_COUNT_ASKED]),
			beyond(account->lost, before->lost));
	feed->account = *account;
}

/* Returns whether the next interval is to begin with nothing known, so that its stacks find a place. */
static bool should_forget(const struct top_feed *feed)
{
	return session_is_half_full(feed->session) || session_nears_memory_limit(feed->session);
}

int top_feed_interval(struct top_feed *feed)
{
	struct session_account account;
	int err = begin(feed, clock_s(CLOCK_MONOTONIC)) ?: take_held(feed) ?: session_count_samples(feed->session, &account);

	if (!err)
		count(feed, &account);
	/* It reports its errors. */
	if (!err && session_end_epoch(feed->session, should_forget(feed), take, feed))
		return -EIO;
	err = err ?: top_model_end(feed->model);
	if (err)
		log_error("cannot count what was sampled: %s", strerror(-err));
	return err;
}

int top_feed_finish(struct top_feed *feed, const struct profile *profile, const struct session_account *account,
		    double end)
{
	/* Its measure is complete, and those of the epochs before were not. */
	const struct profile_measure measure = profile_get_measure(profile);
	int err = begin(feed, end) ?: take_held(feed) ?: profile_set_measure(feed->all, &measure);

	count(feed, account);
	err = err ?: take(profile, feed) ?: top_model_end(feed->model);
	feed->finished = true;
	if (err)
		log_error("cannot count what was sampled last: %s", strerror(-err));
	return err;
}

struct profile *top_feed_profile(const struct top_feed *feed)
{
	/* The account is of the whole run: what was begun anew since has none. */
	struct session_account account = {.source = feed->account.source, .freq = feed->account.freq};
	struct profile *out = profile_new();
	bool is_whole = feed->all_since <= feed->begin;
	struct error error;

	if (is_whole)
		account = feed->account;
	account.duration_s = feed->since - feed->all_since;
	if (out && !profile_edit_add(out, feed->all, NULL, &error) &&
	    !session_describe_epochs(feed->session, feed->finished && is_whole ? NULL : &account, out))
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
