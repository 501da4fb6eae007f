// SPDX-License-Identifier: Apache-2.0
/* Sorts the samples of a profile into tracks, one per thread or process, in the order of their times. */
#include "output/formats/tracks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "output/output.h"

/* A track, while tracks are found and sorted. */
struct draft {
	uint32_t process, thread, timed;
	uint32_t index; /* before sorting; the fields above are the draft's key */
	uint64_t total, process_total;
};

/* The drafts that a sample's value goes to: the part that has times, and the rest. INTERN_NONE: that part is 0. */
struct share {
	uint64_t timed_value;
	uint32_t timed, rest;
};

static int largest_first(const void *a, const void *b)
{
	const struct draft *x = a, *y = b;

	if (x->process_total != y->process_total)
		return x->process_total > y->process_total ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->timed != y->timed)
		return x->timed > y->timed ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int by_track_and_time(const void *a, const void *b)
{
	const struct output_tick *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static uint64_t period_of(const struct profile *p)
{
	uint64_t period = profile_get_measure(p).period_ns;
	const char *freq = profile_find_fact(p, PROFILE_FACT_FREQ);

	if (!period && freq && strtod(freq, NULL) >= 1)
		period = (uint64_t)(1e9 / strtod(freq, NULL));
	return period;
}

/* Finds or makes the draft for a sample's value. Returns its index, or INTERN_NONE without memory. */
static uint32_t draft_of(struct intern *drafts, const struct profile_sample *sample, bool timed, uint64_t value)
{
	struct draft draft = {.process = sample->process, .thread = sample->thread, .timed = timed};
	bool fresh;
	uint32_t at = intern_add(drafts, &draft, &fresh);

	if (at != INTERN_NONE)
		((struct draft *)intern_item(drafts, at))->total += value;
	return at;
}

/* Makes the drafts of tracks, and fills the shares of the samples. Samples without frames have neither. */
static int make_drafts(const struct profile *p, struct intern *drafts, struct share *shares)
{
	size_t nr_samples, nr_events;
	const struct profile_sample *samples = profile_samples(p, &nr_samples);
	const struct profile_event *events = profile_events(p, &nr_events);

	for (size_t i = 0; i < nr_events; i++)
		shares[events[i].sample].timed_value += events[i].value;
	for (size_t i = 0; i < nr_samples; i++) {
		struct share *share = &shares[i];

		share->timed = share->rest = INTERN_NONE;
		if (samples[i].stack == PROFILE_ROOT)
			continue;
		if (share->timed_value) {
			share->timed = draft_of(drafts, &samples[i], true, share->timed_value);
			if (share->timed == INTERN_NONE)
				return -ENOMEM;
		}
		if (samples[i].value > share->timed_value) {
			share->rest = draft_of(drafts, &samples[i], false, samples[i].value - share->timed_value);
			if (share->rest == INTERN_NONE)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Sorts the drafts; place[] maps a draft's index before sorting to the one after. */
static int sort_drafts(const struct profile *p, struct intern *drafts, uint32_t *place)
{
	uint64_t *totals = calloc((size_t)profile_process_count(p) + 1, sizeof(*totals));

	if (!totals)
		return -ENOMEM;
	for (uint32_t i = 0; i < drafts->count; i++) {
		struct draft *draft = intern_item(drafts, i);

		draft->index = i;
		totals[draft->process] += draft->total;
	}
	for (uint32_t i = 0; i < drafts->count; i++) {
		struct draft *draft = intern_item(drafts, i);

		draft->process_total = totals[draft->process];
	}
	if (drafts->count)
		qsort(drafts->items, drafts->count, sizeof(struct draft), largest_first);
	for (uint32_t i = 0; i < drafts->count; i++)
		place[((struct draft *)intern_item(drafts, i))->index] = i;
	free(totals);
	return 0;
}

static bool has_waits(const struct profile *p)
{
	return strcmp(profile_get_measure(p).unit, PROFILE_UNIT_TIME) == 0;
}

/* Returns how long an event lasts that is a wait; 0: it is a sample. */
static uint64_t wait_length(const struct profile *p, const struct profile_event *event, uint32_t stack)
{
	return has_waits(p) && profile_state_of(p, stack) ? (uint64_t)event->value * 1000 : 0;
}

/* Fills in the ticks of all tracks, sorted. Returns their number. */
static size_t fill_ticks(const struct profile *p, const struct share *shares, const uint32_t *place,
			 struct output_tick *ticks)
{
	size_t nr_events, nr_samples, n = 0;
	const struct profile_event *events = profile_events(p, &nr_events);
	const struct profile_sample *samples = profile_samples(p, &nr_samples);

	for (size_t i = 0; i < nr_events; i++) {
		const struct share *share = &shares[events[i].sample];

		if (share->timed != INTERN_NONE && events[i].value)
			ticks[n++] = (struct output_tick){
				.time_ns = events[i].time_ns,
				.value = events[i].value,
				.length_ns = wait_length(p, &events[i], samples[events[i].sample].stack),
				.stack = samples[events[i].sample].stack,
				.track = place[share->timed],
			};
	}
	for (size_t i = 0; i < nr_samples; i++) {
		if (shares[i].rest != INTERN_NONE)
			ticks[n++] = (struct output_tick){
				.value = samples[i].value - shares[i].timed_value,
				.stack = samples[i].stack,
				.track = place[shares[i].rest],
			};
	}
	qsort(ticks, n, sizeof(*ticks), by_track_and_time);
	return n;
}

/* Numbers the processes that have the same PID, to tell them apart. */
static int number_processes(const struct profile *p, struct output_tracks *t)
{
	struct intern pids;
	int err = 0;

	intern_init(&pids, sizeof(int32_t), sizeof(int32_t));
	for (size_t i = 0; i < t->count && !err; i++) {
		int32_t pid = profile_process_at(p, t->tracks[i].process)->pid;
		bool fresh;

		if (i && t->tracks[i].process == t->tracks[i - 1].process)
			t->tracks[i].again = t->tracks[i - 1].again;
		else if (intern_add(&pids, &pid, &fresh) == INTERN_NONE)
			err = -ENOMEM;
		else if (!pid || !fresh)
			t->tracks[i].again = t->tracks[i].process + 1;
	}
	intern_free(&pids);
	return err;
}

int output_tracks_make(const struct profile *p, struct output_tracks *t)
{
	size_t nr_samples, nr_events, nr_ticks;
	struct intern drafts;
	struct share *shares;
	uint32_t *place = NULL;
	int err = -ENOMEM;

	memset(t, 0, sizeof(*t));
	profile_samples(p, &nr_samples);
	profile_events(p, &nr_events);
	t->period_ns = period_of(p);
	t->has_waits = has_waits(p);
	intern_init(&drafts, sizeof(struct draft), offsetof(struct draft, index));
	shares = calloc(nr_samples + 1, sizeof(*shares));
	t->ticks = calloc(nr_samples + nr_events + 1, sizeof(*t->ticks));
	if (!shares || !t->ticks || make_drafts(p, &drafts, shares))
		goto done;
	t->tracks = calloc((size_t)drafts.count + 1, sizeof(*t->tracks));
	place = calloc((size_t)drafts.count + 1, sizeof(*place));
	if (!t->tracks || !place || sort_drafts(p, &drafts, place))
		goto done;
	t->count = drafts.count;
	for (uint32_t i = 0; i < drafts.count; i++) {
		const struct draft *draft = intern_item(&drafts, i);

		t->tracks[i].process = draft->process;
		t->tracks[i].thread = draft->thread;
		t->tracks[i].timed = draft->timed;
		t->tracks[i].total = draft->total;
		t->timed |= draft->timed;
	}
	nr_ticks = fill_ticks(p, shares, place, t->ticks);
	for (size_t i = 0; i < nr_ticks; i++) {
		struct output_track *track = &t->tracks[t->ticks[i].track];

		if (!track->count++)
			track->ticks = &t->ticks[i];
	}
	err = number_processes(p, t);
done:
	intern_free(&drafts);
	free(shares);
	free(place);
	if (err)
		output_tracks_free(t);
	return err;
}

void output_tracks_free(struct output_tracks *t)
{
	free(t->tracks);
	free(t->ticks);
	memset(t, 0, sizeof(*t));
}

char *output_track_label(const struct profile *p, const struct output_tracks *t, const struct output_track *track)
{
	const char *times = t->timed && !track->timed ? ", times unknown" : "";
	char *process = NULL, *label = NULL;
	int n;

	if (track->thread == PROFILE_NONE || profile_process_count(p) > 1) {
		process = output_process_label(p, track->process);
		if (!process)
			return NULL;
	}
	if (track->thread == PROFILE_NONE) {
		n = asprintf(&label, "%s%s", process, times);
	} else {
		const struct profile_thread *thread = profile_thread_at(p, track->thread);

		n = asprintf(&label, "%s%s%s (%d)%s", process ? process : "", process ? ": " : "",
			     profile_string(p, thread->name), thread->tid, times);
	}
	free(process);
	return n < 0 ? NULL : label;
}

uint64_t output_tick_end(const struct output_tracks *t, const struct output_track *track, size_t i)
{
	const struct output_tick *tick = &track->ticks[i];
	uint64_t length = t->has_waits ? t->period_ns : tick->value * t->period_ns, next;

	if (tick->length_ns) {
		next = i + 1 < track->count ? track->ticks[i + 1].time_ns : UINT64_MAX;
		return tick->time_ns + tick->length_ns < next ? tick->time_ns + tick->length_ns : next;
	}
	if (i + 1 < track->count && track->ticks[i + 1].time_ns - tick->time_ns <= length + t->period_ns / 2)
		return track->ticks[i + 1].time_ns;
	return tick->time_ns + length;
}

const struct output_track *output_track_at(const struct profile *p, const struct output_tracks *t, int32_t tid,
					   uint64_t time_ns)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct output_track *track = &t->tracks[i];

		if (track->timed && track->thread != PROFILE_NONE && profile_thread_at(p, track->thread)->tid == tid &&
		    track->ticks[0].time_ns <= time_ns && time_ns < output_tick_end(t, track, track->count - 1))
			return track;
	}
	return NULL;
}

uint64_t output_tracks_end(const struct profile *p, const struct output_tracks *t)
{
	const char *fact = profile_find_fact(p, PROFILE_FACT_DURATION);
	double duration_ns = fact ? strtod(fact, NULL) * 1e9 : 0;
	uint64_t end = duration_ns > 0 && duration_ns < (double)INT64_MAX ? (uint64_t)duration_ns : 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct output_track *track = &t->tracks[i];
		uint64_t last = track->timed ? output_tick_end(t, track, track->count - 1) : 0;

		end = last > end ? last : end;
	}
	return end;
}
