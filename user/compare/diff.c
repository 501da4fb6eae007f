// SPDX-License-Identifier: Apache-2.0
/* Compares two profiles: adds up both, and decides which differences are beyond the noise. */
#include "compare/diff_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/noise.h"
#include "profile/totals.h"

/*
 * Returns, by stack, whether none of the stacks below it has the same function: recursion counts once. The caller frees
 * it. NULL: no memory.
 */
static bool *outermost_of(const struct profile *p)
{
	uint32_t stacks = profile_stack_count(p), *frames = calloc(stacks, sizeof(*frames));
	bool *outermost = calloc(stacks, sizeof(*outermost));
	struct profile_totals totals;
	int err = profile_totals_make(&totals, p);

	if (!frames || !outermost)
		err = -ENOMEM;
	for (uint32_t s = PROFILE_ROOT + 1; s < stacks && !err; s++)
		frames[s] = profile_stack_at(p, s)->frame;
	err = err ?: profile_totals_outermost(&totals, frames, profile_frame_count(p), outermost);
	profile_totals_free(&totals);
	free(frames);
	if (!err)
		return outermost;
	free(outermost);
	return NULL;
}

static void add_up(struct diff *d, const bool *outermost)
{
	const struct profile *p = d->merged;
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (int side = 0; side < DIFF_SIDES; side++) {
		for (size_t i = 0; i < count; i++) {
			uint64_t value = side == DIFF_BEFORE ? d->before[i] : samples[i].value;

			d->whole[side].total += value;
			d->stacks[samples[i].stack].self.value[side] += value;
			d->stacks[samples[i].stack].total.value[side] += value;
		}
		for (uint32_t s = profile_stack_count(p) - 1; s > PROFILE_ROOT; s--) {
			const struct profile_stack *stack = profile_stack_at(p, s);

			d->stacks[stack->parent].total.value[side] += d->stacks[s].total.value[side];
			d->functions[stack->frame].self.value[side] += d->stacks[s].self.value[side];
			if (outermost[s])
				d->functions[stack->frame].total.value[side] += d->stacks[s].total.value[side];
		}
	}
}

static struct noise_side noise_side(const struct diff *d, enum diff_side side, double count)
{
	return (struct noise_side){
		.count = count,
		.total = d->options.basis == DIFF_SHARE ? (double)d->whole[side].total : INFINITY,
		.units_per_sample = d->whole[side].units_per_sample,
	};
}

/* Returns the least deviate of a change, in standard deviations, however many entries are compared. */
static double least_deviate(const struct diff *d)
{
	return noise_deviate(1 - d->options.confidence);
}

/* Returns whether `count` independent samples could show a change, if all of them were on one side. */
static bool could_tell(const struct diff *d, double count)
{
	for (int all_of = 0; all_of < DIFF_SIDES; all_of++) {
		struct noise_side sides[DIFF_SIDES];

		for (int i = 0; i < DIFF_SIDES; i++) {
			sides[i] = noise_side(d, (enum diff_side)i, i == all_of ? count : 0);
			sides[i].count = fmin(sides[i].count, sides[i].total);
		}
		if (noise_probability(&sides[DIFF_BEFORE], &sides[DIFF_AFTER], 1, d->options.tolerance,
				      least_deviate(d)) < 1)
			return true;
	}
	return false;
}

/* Returns the fewest independent samples, of both sides together, that can show a change. */
static double fewest(const struct diff *d)
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
	const struct diff *diff;
	struct diff_entry *entries;
	size_t count;
	double fewest;
};

static struct diff_change *family_change(const struct family *family, size_t i)
{
	return i % 2 ? &family->entries[i / 2].total : &family->entries[i / 2].self;
}

static bool family_tests(const struct family *family, const struct diff_change *change)
{
	const struct diff *d = family->diff;
	double count = 0, rest = 0;

	for (int i = 0; i < DIFF_SIDES; i++) {
		count += (double)change->value[i];
		rest += (double)(d->whole[i].total - change->value[i]);
	}
	/* A share near 100 % is as uncertain as one near 0 %: the samples outside the entry count as well. */
	if (d->options.basis == DIFF_SHARE)
		count = fmin(count, rest);
	return count / (double)change->design_effect >= family->fewest;
}

static double probability(const struct diff *d, const struct diff_change *change, double least)
{
	struct noise_side before = noise_side(d, DIFF_BEFORE, (double)change->value[DIFF_BEFORE]);
	struct noise_side after = noise_side(d, DIFF_AFTER, (double)change->value[DIFF_AFTER]);

	return noise_probability(&before, &after, (double)change->design_effect, d->options.tolerance, least);
}

static enum diff_verdict verdict(const struct diff *d, const struct diff_change *change)
{
	if (diff_difference(d, change) > 0)
		return change->value[DIFF_BEFORE] ? DIFF_GREW : DIFF_NEW;
	return change->value[DIFF_AFTER] ? DIFF_SHRANK : DIFF_GONE;
}

/* Sets every entry's verdict and interval. Returns how many comparisons were tested, or -ENOMEM. */
static ssize_t judge(const struct family *family)
{
	const struct diff *d = family->diff;
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
		const struct diff_change *change = family_change(family, i);

		probabilities[i] = INFINITY;
		if (!family_tests(family, change))
			continue;
		probabilities[i] = probability(d, change, least);
		sorted[tested++] = probabilities[i];
	}
	chosen = noise_choose(sorted, tested, rate, &limit);
	deviate = noise_deviate(tested ? rate * (double)(chosen ?: 1) / (double)tested : rate);
	for (size_t i = 0; i < 2 * family->count; i++) {
		struct diff_change *change = family_change(family, i);
		struct noise_side before = noise_side(d, DIFF_BEFORE, (double)change->value[DIFF_BEFORE]);
		struct noise_side after = noise_side(d, DIFF_AFTER, (double)change->value[DIFF_AFTER]);
		struct noise_interval interval =
			noise_find_interval(&before, &after, (double)change->design_effect, deviate);

		change->low = (float)interval.low;
		change->high = (float)interval.high;
		change->verdict = probabilities[i] <= limit ? verdict(d, change) : DIFF_NOISE;
	}
	free(probabilities);
	free(sorted);
	return (ssize_t)tested;
}

static int judge_all(struct diff *d)
{
	const double least = fewest(d);
	const struct family families[] = {
		/* PROFILE_ROOT has no frames and is not compared. */
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
	const char *text = profile_find_fact(p, PROFILE_FACT_DURATION);
	double seconds = text ? strtod(text, NULL) : 0;

	return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

static void know_whole(struct diff_whole *whole, const struct profile *p)
{
	size_t events;

	profile_events(p, &events);
	whole->duration_s = seconds_of(p);
	whole->period_s = (double)profile_get_measure(p).period_ns / 1e9;
	whole->times = events > 0;
}

static void set_units_per_sample(struct diff *d)
{
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct diff_whole *whole = &d->whole[i];

		if (d->options.basis == DIFF_SHARE)
			whole->units_per_sample = whole->total ? 1 / (double)whole->total : 0;
		else if (d->options.basis == DIFF_RATE)
			whole->units_per_sample = whole->period_s / whole->duration_s;
		else
			whole->units_per_sample = whole->period_s;
	}
}

/* Checks that both profiles have the same measure, and the facts that the basis needs. Returns 0 or -EINVAL. */
static int check(const struct diff *d, const struct profile *before, const struct profile *after, struct error *error)
{
	const struct profile_measure a = profile_get_measure(before), b = profile_get_measure(after);
	const char *const *names = d->options.names;

	if (strcmp(a.name, b.name) != 0 || strcmp(a.unit, b.unit) != 0)
		return error_set(error, -EINVAL,
				 "%s has %s in %s, and %s has %s in %s: only profiles of the same can be compared",
				 names[0], a.name, a.unit, names[1], b.name, b.unit);
	for (int i = 0; i < DIFF_SIDES && d->options.basis != DIFF_SHARE; i++) {
		if (d->whole[i].period_s > 0 && (d->whole[i].duration_s > 0 || d->options.basis == DIFF_TIME))
			continue;
		return error_set(
			error, -EINVAL, "%s does not say %s, without which only shares can be compared", names[i],
			d->whole[i].period_s > 0 ? "how long its run was" : "how much CPU time a sample stands for");
	}
	return 0;
}

/* Adds up the merged profile, and judges its changes if their noise can be estimated. Returns 0 or -ENOMEM. */
static int compare(struct diff *d, const struct diff_map maps[])
{
	uint32_t frames = profile_frame_count(d->merged), stacks = profile_stack_count(d->merged);
	bool *outermost = outermost_of(d->merged);
	bool counts = strcmp(profile_get_measure(d->merged).unit, "count") == 0;
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
	set_units_per_sample(d);
	for (int i = 0; i < DIFF_SIDES && !err; i++) {
		if (d->whole[i].times)
			err = diff_take_times(d, &maps[i], outermost);
	}
	d->judged = d->whole[DIFF_BEFORE].total && d->whole[DIFF_AFTER].total &&
		    (counts || (d->whole[DIFF_BEFORE].times && d->whole[DIFF_AFTER].times));
	if (d->judged)
		err = err ?: judge_all(d);
done:
	free(outermost);
	return err;
}

int diff_make(const struct profile *before, const struct profile *after, const struct diff_options *options,
	      struct diff **diff, struct error *error)
{
	struct diff_map maps[DIFF_SIDES] = {{.p = before}, {.p = after}};
	struct diff *d = calloc(1, sizeof(*d));
	int err = d ? 0 : -ENOMEM;

	*diff = NULL;
	if (!err) {
		d->options = *options;
		for (int i = 0; i < DIFF_SIDES; i++)
			know_whole(&d->whole[i], maps[i].p);
		err = check(d, before, after, error);
	}
	err = err ?: diff_merge(d, maps);
	err = err ?: compare(d, maps);
	if (err == -ENOMEM)
		error_set(error, err, "out of memory while comparing %s and %s", options->names[DIFF_BEFORE],
			  options->names[DIFF_AFTER]);
	for (int i = 0; i < DIFF_SIDES; i++)
		diff_map_free(&maps[i]);
	if (err)
		diff_free(d);
	else
		*diff = d;
	return err;
}

void diff_free(struct diff *diff)
{
	if (!diff)
		return;
	profile_free(diff->merged);
	free(diff->before);
	free(diff->functions);
	free(diff->stacks);
	free(diff);
}

double diff_difference(const struct diff *diff, const struct diff_change *change)
{
	return (double)change->value[DIFF_AFTER] * diff->whole[DIFF_AFTER].units_per_sample -
	       (double)change->value[DIFF_BEFORE] * diff->whole[DIFF_BEFORE].units_per_sample;
}
