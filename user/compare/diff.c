// SPDX-License-Identifier: Apache-2.0
#include "compare/diff_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/noise.h"
#include "profile/totals.h"

/* The stacks on which no other has the same function: recursion counts once. Caller frees. NULL without memory. */
static bool *outermost_of(const struct profile *p)
{
	uint32_t stacks = profile_stack_count(p), *frames = calloc(stacks, sizeof(*frames));
	bool *outermost = calloc(stacks, sizeof(*outermost));
	struct profile_totals totals;
	int err = profile_totals_make(&totals, p);

	if (!frames || !outermost)
		err = -ENOMEM;
	for (uint32_t s = PROFILE_ROOT + 1; s < stacks && !err; s++)
		frames[s] = profile_stack(p, s)->frame;
	err = err ?: profile_totals_outermost(&totals, frames, profile_frame_count(p), outermost);
	profile_totals_free(&totals);
	free(frames);
	if (!err)
		return outermost;
	free(outermost);
	return NULL;
}

static void add_up(struct profile_diff *d, const bool *outermost)
{
	const struct profile *p = d->merged;
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (int side = 0; side < PROFILE_DIFF_SIDES; side++) {
		for (size_t i = 0; i < count; i++) {
			uint64_t value = side == PROFILE_DIFF_BEFORE ? d->before[i] : samples[i].value;

			d->whole[side].total += value;
			d->stacks[samples[i].stack].self.value[side] += value;
			d->stacks[samples[i].stack].total.value[side] += value;
		}
		for (uint32_t s = profile_stack_count(p) - 1; s > PROFILE_ROOT; s--) {
			const struct profile_stack *stack = profile_stack(p, s);

			d->stacks[stack->parent].total.value[side] += d->stacks[s].total.value[side];
			d->functions[stack->frame].self.value[side] += d->stacks[s].self.value[side];
			if (outermost[s])
				d->functions[stack->frame].total.value[side] += d->stacks[s].total.value[side];
		}
	}
}

static struct profile_noise_side noise_side(const struct profile_diff *d, enum profile_diff_side side, double count)
{
	return (struct profile_noise_side){
		.count = count,
		.total = d->options.basis == PROFILE_DIFF_SHARE ? (double)d->whole[side].total : INFINITY,
		.worth = d->whole[side].worth,
	};
}

/* What no change can be less than, however many are compared. */
static double least_deviate(const struct profile_diff *d)
{
	return profile_noise_deviate(1 - d->options.confidence);
}

/* Whether so many independent samples could show anything, if all were on the one side or on the other. */
static bool could_tell(const struct profile_diff *d, double count)
{
	for (int all_of = 0; all_of < PROFILE_DIFF_SIDES; all_of++) {
		struct profile_noise_side sides[PROFILE_DIFF_SIDES];

		for (int i = 0; i < PROFILE_DIFF_SIDES; i++) {
			sides[i] = noise_side(d, (enum profile_diff_side)i, i == all_of ? count : 0);
			sides[i].count = fmin(sides[i].count, sides[i].total);
		}
		if (profile_noise_probability(&sides[PROFILE_DIFF_BEFORE], &sides[PROFILE_DIFF_AFTER], 1,
					      d->options.tolerance, least_deviate(d)) < 1)
			return true;
	}
	return false;
}

/* The fewest independent samples, of both sides together, that can show anything. */
static double fewest(const struct profile_diff *d)
{
	double few = 1, many = 2;

	while (many < 1e18 && !could_tell(d, many))
		many *= 2;
	while (many - few > 0.01 * few) {
		double middle = (few + many) / 2;

		if (could_tell(d, middle))
			many = middle;
		else
			few = middle;
	}
	return many;
}

/* Self and total of all entries: the comparisons that are judged together. */
struct family {
	const struct profile_diff *diff;
	struct profile_diff_entry *entries;
	size_t count;
	double fewest;
};

static struct profile_diff_change *family_change(const struct family *family, size_t i)
{
	return i % 2 ? &family->entries[i / 2].total : &family->entries[i / 2].self;
}

static bool family_tests(const struct family *family, const struct profile_diff_change *change)
{
	const struct profile_diff *d = family->diff;
	double count = 0, rest = 0;

	for (int i = 0; i < PROFILE_DIFF_SIDES; i++) {
		count += (double)change->value[i];
		rest += (double)(d->whole[i].total - change->value[i]);
	}
	/* As little can be told of nearly all samples as of nearly none. */
	if (d->options.basis == PROFILE_DIFF_SHARE)
		count = fmin(count, rest);
	return count / (double)change->design_effect >= family->fewest;
}

static double probability(const struct profile_diff *d, const struct profile_diff_change *change, double least)
{
	struct profile_noise_side before =
		noise_side(d, PROFILE_DIFF_BEFORE, (double)change->value[PROFILE_DIFF_BEFORE]);
	struct profile_noise_side after = noise_side(d, PROFILE_DIFF_AFTER, (double)change->value[PROFILE_DIFF_AFTER]);

	return profile_noise_probability(&before, &after, (double)change->design_effect, d->options.tolerance, least);
}

static enum profile_diff_verdict verdict(const struct profile_diff *d, const struct profile_diff_change *change)
{
	if (profile_diff_difference(d, change) > 0)
		return change->value[PROFILE_DIFF_BEFORE] ? PROFILE_DIFF_GREW : PROFILE_DIFF_NEW;
	return change->value[PROFILE_DIFF_AFTER] ? PROFILE_DIFF_SHRANK : PROFILE_DIFF_GONE;
}

/* Decides, and gives every change its interval. Returns how many were tested, or -ENOMEM. */
static ssize_t judge(const struct family *family)
{
	const struct profile_diff *d = family->diff;
	double rate = 1 - d->options.confidence, least = least_deviate(d), limit, deviate;
	double *probabilities = calloc(2 * family->count + 1, sizeof(*probabilities));
	double *sorted = calloc(2 * family->count + 1, sizeof(*sorted));
	size_t tested = 0, chosen;

	if (!probabilities || !sorted) {
		free(probabilities);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < 2 * family->count; i++) {
		const struct profile_diff_change *change = family_change(family, i);

		probabilities[i] = INFINITY;
		if (!family_tests(family, change))
			continue;
		probabilities[i] = probability(d, change, least);
		sorted[tested++] = probabilities[i];
	}
	chosen = profile_noise_choose(sorted, tested, rate, &limit);
	deviate = profile_noise_deviate(tested ? rate * (double)(chosen ?: 1) / (double)tested : rate);
	for (size_t i = 0; i < 2 * family->count; i++) {
		struct profile_diff_change *change = family_change(family, i);
		struct profile_noise_side before =
			noise_side(d, PROFILE_DIFF_BEFORE, (double)change->value[PROFILE_DIFF_BEFORE]);
		struct profile_noise_side after =
			noise_side(d, PROFILE_DIFF_AFTER, (double)change->value[PROFILE_DIFF_AFTER]);
		struct profile_noise_interval interval =
			profile_noise_interval(&before, &after, (double)change->design_effect, deviate);

		change->low = (float)interval.low;
		change->high = (float)interval.high;
		change->verdict = probabilities[i] <= limit ? verdict(d, change) : PROFILE_DIFF_NOISE;
	}
	free(probabilities);
	free(sorted);
	return (ssize_t)tested;
}

static int judge_all(struct profile_diff *d)
{
	const double least = fewest(d);
	const struct family families[] = {
		/* The stack of no frames is no stack that could change. */
		{d, d->stacks + 1, profile_stack_count(d->merged) - 1, least},
		{d, d->functions, profile_frame_count(d->merged), least},
	};

	for (size_t i = 0; i < 2; i++) {
		ssize_t tested = judge(&families[i]);

		if (tested < 0)
			return (int)tested;
		d->tested = (size_t)tested;
	}
	return 0;
}

static double seconds_of(const struct profile *p)
{
	const char *text = profile_fact(p, PROFILE_FACT_DURATION);
	double seconds = text ? strtod(text, NULL) : 0;

	return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

static void know_whole(struct profile_diff_whole *whole, const struct profile *p)
{
	size_t events;

	profile_events(p, &events);
	whole->duration_s = seconds_of(p);
	whole->period_s = (double)profile_measure(p).period_ns / 1e9;
	whole->times = events > 0;
}

static void set_worth(struct profile_diff *d)
{
	for (int i = 0; i < PROFILE_DIFF_SIDES; i++) {
		struct profile_diff_whole *whole = &d->whole[i];

		if (d->options.basis == PROFILE_DIFF_SHARE)
			whole->worth = whole->total ? 1 / (double)whole->total : 0;
		else if (d->options.basis == PROFILE_DIFF_RATE)
			whole->worth = whole->period_s / whole->duration_s;
		else
			whole->worth = whole->period_s;
	}
}

/* Whether both count the same, and tell what the basis takes. */
static int check(const struct profile_diff *d, const struct profile *before, const struct profile *after,
		 struct error *error)
{
	const struct profile_measure a = profile_measure(before), b = profile_measure(after);
	const char *const *names = d->options.names;

	if (strcmp(a.name, b.name) != 0 || strcmp(a.unit, b.unit) != 0)
		return error_set(error, -EINVAL,
				 "%s has %s in %s, and %s has %s in %s: only profiles of the same can be compared",
				 names[0], a.name, a.unit, names[1], b.name, b.unit);
	for (int i = 0; i < PROFILE_DIFF_SIDES && d->options.basis != PROFILE_DIFF_SHARE; i++) {
		if (d->whole[i].period_s > 0 && (d->whole[i].duration_s > 0 || d->options.basis == PROFILE_DIFF_TIME))
			continue;
		return error_set(
			error, -EINVAL, "%s does not say %s, without which only shares can be compared", names[i],
			d->whole[i].period_s > 0 ? "how long its run was" : "how much CPU time a sample stands for");
	}
	return 0;
}

/* What the maps have led to: added up, and judged where there is something to judge by. */
static int compare(struct profile_diff *d, const struct profile_diff_map maps[])
{
	uint32_t frames = profile_frame_count(d->merged), stacks = profile_stack_count(d->merged);
	bool *outermost = outermost_of(d->merged);
	bool counts = strcmp(profile_measure(d->merged).unit, "count") == 0;
	int err = 0;

	d->functions = calloc(frames + 1, sizeof(*d->functions));
	d->stacks = calloc(stacks, sizeof(*d->stacks));
	if (!outermost || !d->functions || !d->stacks) {
		err = -ENOMEM;
		goto done;
	}
	for (uint32_t i = 0; i < frames; i++)
		d->functions[i].self.design_effect = d->functions[i].total.design_effect = 1;
	for (uint32_t i = 0; i < stacks; i++)
		d->stacks[i].self.design_effect = d->stacks[i].total.design_effect = 1;
	add_up(d, outermost);
	set_worth(d);
	for (int i = 0; i < PROFILE_DIFF_SIDES && !err; i++) {
		if (d->whole[i].times)
			err = profile_diff_take_times(d, &maps[i], outermost);
	}
	d->judged = d->whole[PROFILE_DIFF_BEFORE].total && d->whole[PROFILE_DIFF_AFTER].total &&
		    (counts || (d->whole[PROFILE_DIFF_BEFORE].times && d->whole[PROFILE_DIFF_AFTER].times));
	if (d->judged)
		err = err ?: judge_all(d);
done:
	free(outermost);
	return err;
}

int profile_diff(const struct profile *before, const struct profile *after, const struct profile_diff_options *options,
		 struct profile_diff **diff, struct error *error)
{
	struct profile_diff_map maps[PROFILE_DIFF_SIDES] = {{.p = before}, {.p = after}};
	struct profile_diff *d = calloc(1, sizeof(*d));
	int err = d ? 0 : -ENOMEM;

	*diff = NULL;
	if (!err) {
		d->options = *options;
		for (int i = 0; i < PROFILE_DIFF_SIDES; i++)
			know_whole(&d->whole[i], maps[i].p);
		err = check(d, before, after, error);
	}
	err = err ?: profile_diff_merge(d, maps);
	err = err ?: compare(d, maps);
	if (err == -ENOMEM)
		error_set(error, err, "out of memory while comparing %s and %s", options->names[PROFILE_DIFF_BEFORE],
			  options->names[PROFILE_DIFF_AFTER]);
	for (int i = 0; i < PROFILE_DIFF_SIDES; i++)
		profile_diff_map_free(&maps[i]);
	if (err)
		profile_diff_free(d);
	else
		*diff = d;
	return err;
}

void profile_diff_free(struct profile_diff *diff)
{
	if (!diff)
		return;
	profile_free(diff->merged);
	free(diff->before);
	free(diff->functions);
	free(diff->stacks);
	free(diff);
}

double profile_diff_difference(const struct profile_diff *diff, const struct profile_diff_change *change)
{
	return (double)change->value[PROFILE_DIFF_AFTER] * diff->whole[PROFILE_DIFF_AFTER].worth -
	       (double)change->value[PROFILE_DIFF_BEFORE] * diff->whole[PROFILE_DIFF_BEFORE].worth;
}
