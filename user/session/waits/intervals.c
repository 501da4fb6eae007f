// SPDX-License-Identifier: Apache-2.0
/* Keeps when waits were, and turns them into events of the profile. */
#include "session/waits/intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/beyond.h"
#include "kernel/waits.h"
#include "session/internal.h"
#include "session/measure.h"

#define NS_PER_US 1000

struct known {
	struct pybpf_wait_key key;
	uint64_t left_us; /* of the sample's value: events are never more than it */
	uint32_t sample;  /* of the profile; PROFILE_NONE: not there yet */
	uint32_t pad;
};

void session_intervals_init(struct session_intervals *l)
{
	memset(l, 0, sizeof(*l));
	intern_init(&l->keys, sizeof(struct known), sizeof(struct pybpf_wait_key));
}

void session_intervals_free(struct session_intervals *l)
{
	free(l->waiting);
	intern_free(&l->keys);
	session_intervals_init(l);
}

/* Returns the index of a key, or INTERN_NONE without memory. */
static uint32_t index_of(struct session_intervals *l, const struct pybpf_wait_key *key)
{
	const struct known fresh = {.key = *key, .sample = PROFILE_NONE};
	bool added;

	return intern_add(&l->keys, &fresh, &added);
}

int session_intervals_add(struct session_intervals *l, const struct pybpf_wait_key *key, uint64_t time_ns, uint64_t ns)
{
	uint32_t at;

	if (ns < PYBPF_INTERVAL_NS)
		return 0;
	at = index_of(l, key);
	if (at == INTERN_NONE || array_reserve(&l->waiting, &l->room, l->count + 1, sizeof(*l->waiting)))
		return -ENOMEM;
	l->waiting[l->count++] = (struct session_interval){.time_ns = time_ns, .ns = ns, .key = at};
	return 0;
}

int session_intervals_take(struct session_intervals *l, const struct pybpf_interval_event *event, size_t size,
			   bool refuse)
{
	if (size < sizeof(*event))
		return -EBADMSG;
	if (!refuse)
		return session_intervals_add(l, &event->key, event->time_ns, event->ns);
	l->refused.count++;
	l->refused.ns += event->ns;
	return 0;
}

int session_intervals_know(struct session_intervals *l, const struct pybpf_wait_key *key, uint32_t sample,
			   struct pybpf_wait_time time)
{
	uint32_t at = index_of(l, key);
	struct known *known;

	if (at == INTERN_NONE)
		return -ENOMEM;
	known = intern_item(&l->keys, at);
	known->sample = sample;
	known->left_us += time.ns / NS_PER_US;
	l->all.count += time.count;
	l->all.ns += time.ns;
	return 0;
}

/* Adds an interval as one event, or as several if its length does not fit into one (71 minutes). */
static int add_events(struct profile *profile, const struct known *known, uint64_t time_ns, uint64_t us)
{
	int err = 0;

	while (us && !err) {
		uint32_t part = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;

		err = profile_add_event(profile, time_ns, known->sample, part);
		time_ns += (uint64_t)part * NS_PER_US;
		us -= part;
	}
	return err;
}

int session_intervals_settle(struct session_intervals *l, struct profile *profile, uint64_t origin_ns)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct session_interval *interval = &l->waiting[i];
		struct known *known = intern_item(&l->keys, interval->key);
		uint64_t begin = interval->time_ns > origin_ns ? interval->time_ns : origin_ns, us;

		if (err || known->sample == PROFILE_NONE) {
			l->waiting[kept++] = *interval;
			continue;
		}
		if (interval->time_ns + interval->ns <= begin)
			continue;
		us = (interval->time_ns + interval->ns - begin) / NS_PER_US;
		us = us < known->left_us ? us : known->left_us;
		known->left_us -= us;
		l->drawn.count++;
		l->drawn.ns += us * NS_PER_US;
		err = add_events(profile, known, begin - origin_ns, us);
	}
	l->count = kept;
	return err;
}

static int take(struct session *s, const struct pybpf_event *event)
{
	return session_intervals_take(&s->waits.intervals, (const void *)event, event->size, !session_may_keep_time(s));
}

static size_t count_times(const struct session *s)
{
	return s->waits.intervals.count;
}

static int settle(struct session *s, const struct session_due *due)
{
	(void)due;
	return session_intervals_settle(&s->waits.intervals, s->profile, s->attach_ns);
}

/* Puts the waits that have no events into the account. */
static void tell(const struct session *s, struct session_account *account)
{
	const struct session_intervals *l = &s->waits.intervals;
	struct pybpf_wait_time lost;

	kernel_get_lost_intervals(s->kernel, &lost);
	account->refused_waits = l->refused.count + lost.count;
	account->refused_ns = l->refused.ns + lost.ns;
	account->undrawn_waits = beyond(l->all.count, l->drawn.count + account->refused_waits);
	account->undrawn_ns = beyond(l->all.ns, l->drawn.ns + account->refused_ns);
}

static bool is_wanted(const struct session_options *options)
{
	return options->mode != SESSION_CPU && options->times;
}

const struct session_measure session_intervals_measure = {
	.name = "when waits were",
	.is_wanted = is_wanted,
	.records = SESSION_RECORD(PYBPF_EVENT_INTERVAL),
	.take = take,
	.count_times = count_times,
	.settle = settle,
	.tell = tell,
};
