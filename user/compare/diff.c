// SPDX-License-Identifier: Apache-2.0
/* Compares two sides of runs: checks that they can be compared, merges and adds them up, and has them judged. */
#include "compare/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/diff_internal.h"
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

/* Adds up the functions' samples, and each side's. Returns 0 or -ENOMEM. */
static int add_up(struct diff *d)
{
	const struct profile *p = d->merged;
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t *on_stack = calloc(profile_stack_count(p), sizeof(*on_stack));
	bool *outermost = outermost_of(p);

	for (int side = 0; side < DIFF_SIDES && on_stack && outermost; side++) {
		memset(on_stack, 0, profile_stack_count(p) * sizeof(*on_stack));
		for (size_t i = 0; i < count; i++) {
			uint64_t value = side == DIFF_BEFORE ? d->before[i] : samples[i].value;

			d->whole[side].total += value;
			on_stack[samples[i].stack] += value;
			d->functions[profile_stack_at(p, samples[i].stack)->frame].self[side] += value;
		}
		for (uint32_t s = profile_stack_count(p) - 1; s > PROFILE_ROOT; s--) {
			const struct profile_stack *stack = profile_stack_at(p, s);

			on_stack[stack->parent] += on_stack[s];
			if (outermost[s])
				d->functions[stack->frame].total[side] += on_stack[s];
		}
		d->whole[side].rest = (double)d->whole[side].total;
	}
	free(on_stack);
	free(outermost);
	return on_stack && outermost ? 0 : -ENOMEM;
}

/* Adds up each run's own samples by function. Returns 0 or -ENOMEM. */
static int add_up_runs(const struct diff *d, struct diff_map *maps, size_t nr_maps)
{
	size_t count;
	const struct profile_sample *merged = profile_samples(d->merged, &count);

	for (size_t i = 0; i < nr_maps; i++) {
		const struct profile_sample *samples = profile_samples(maps[i].p, &count);

		maps[i].self = calloc(profile_frame_count(d->merged) + 1, sizeof(*maps[i].self));
		if (!maps[i].self)
			return -ENOMEM;
		for (size_t s = 0; s < count; s++) {
			uint32_t at = maps[i].samples[s];

			if (at == PROFILE_NONE)
				continue;
			maps[i].self[profile_stack_at(d->merged, merged[at].stack)->frame] += (double)samples[s].value;
			maps[i].total += (double)samples[s].value;
		}
	}
	return 0;
}

/* Returns how long the run was; 0: unknown. */
static double duration_of(const struct profile *p)
{
	const char *text = profile_find_fact(p, PROFILE_FACT_DURATION);
	double seconds = text ? strtod(text, NULL) : 0;

	return isfinite(seconds) && seconds > 0 ? seconds : 0;
}

static void know_wholes(struct diff *d, const struct diff_map *maps, size_t nr_maps)
{
	for (int side = 0; side < DIFF_SIDES; side++)
		d->whole[side].times = true;
	for (size_t i = 0; i < nr_maps; i++) {
		struct diff_whole *whole = &d->whole[maps[i].side];
		double seconds = duration_of(maps[i].p);
		size_t events;

		profile_events(maps[i].p, &events);
		whole->period_s = (double)profile_get_measure(maps[i].p).period_ns / 1e9;
		/* A run of unknown length makes the sum unknown. */
		whole->duration_s = seconds > 0 ? whole->duration_s + seconds : NAN;
		whole->times &= events > 0 && strcmp(profile_get_measure(maps[i].p).unit, PROFILE_UNIT_TIME) != 0;
	}
	for (int side = 0; side < DIFF_SIDES; side++)
		d->whole[side].duration_s = isfinite(d->whole[side].duration_s) ? d->whole[side].duration_s : 0;
}

static void set_units(struct diff *d)
{
	for (int i = 0; i < DIFF_SIDES; i++) {
		struct diff_whole *whole = &d->whole[i];

		if (d->options.basis == DIFF_SHARE)
			whole->units_per_sample = whole->total ? 1 / (double)whole->total : 0;
		else if (d->options.basis == DIFF_RATE)
			whole->units_per_sample = whole->period_s / whole->duration_s;
		else
			whole->units_per_sample = whole->period_s / (double)d->runs[i].count;
		whole->time_s = (double)whole->total * (d->options.basis == DIFF_SHARE ? 0 : whole->units_per_sample);
	}
}

static const char *name_of(const struct diff *d, size_t run)
{
	size_t before = d->runs[DIFF_BEFORE].count;

	return run < before ? d->runs[DIFF_BEFORE].names[run] : d->runs[DIFF_AFTER].names[run - before];
}

/* Returns whether both profiles hold the same run: two runs do not begin in the same nanosecond. */
static bool is_same_run(const struct profile *a, const struct profile *b)
{
	const char *start_a = profile_find_fact(a, PROFILE_FACT_START);
	const char *start_b = profile_find_fact(b, PROFILE_FACT_START);
	size_t samples_a, samples_b;

	profile_samples(a, &samples_a);
	profile_samples(b, &samples_b);
	return a == b || (start_a && start_b && strcmp(start_a, start_b) == 0 && samples_a == samples_b &&
			  profile_total(a) == profile_total(b));
}

static int check_pair(const struct diff *d, const struct diff_map *maps, size_t i, size_t k, struct error *error)
{
	struct profile_measure a = profile_get_measure(maps[i].p), b = profile_get_measure(maps[k].p);

	if (strcmp(a.name, b.name) != 0 || strcmp(a.unit, b.unit) != 0)
		return error_set(error, -EINVAL,
				 "%s has %s in %s, and %s has %s in %s: only profiles of the same can be compared",
				 name_of(d, i), a.name, a.unit, name_of(d, k), b.name, b.unit);
	if (maps[i].side != maps[k].side)
		return 0;
	if (is_same_run(maps[i].p, maps[k].p))
		return error_set(error, -EINVAL, "%s and %s, both %s, hold the same run: give each run once",
				 name_of(d, i), name_of(d, k), maps[i].side == DIFF_BEFORE ? "before" : "after");
	if (a.period_ns != b.period_ns)
		return error_set(error, -EINVAL,
				 "%s and %s, both %s, were sampled at different rates: record all runs of a side with "
				 "the same -F",
				 name_of(d, i), name_of(d, k), maps[i].side == DIFF_BEFORE ? "before" : "after");
	return 0;
}

/* Checks that the runs can be compared, and have the facts that the basis needs. Returns 0 or -EINVAL. */
static int check(const struct diff *d, const struct diff_map *maps, size_t count, struct error *error)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		for (size_t k = i + 1; k < count && !err; k++)
			err = check_pair(d, maps, i, k, error);
	}
	for (size_t i = 0; i < count && !err && d->options.basis != DIFF_SHARE; i++) {
		bool has_period = profile_get_measure(maps[i].p).period_ns > 0;

		if (has_period && (duration_of(maps[i].p) > 0 || d->options.basis == DIFF_TIME))
			continue;
		err = error_set(error, -EINVAL, "%s does not say %s, without which only shares can be compared",
				name_of(d, i),
				has_period ? "how long its run was" : "how much CPU time a sample stands for");
	}
	return err;
}

/* Adds up the merged profile, and judges its changes if their noise can be estimated. Returns 0 or -ENOMEM. */
static int compare(struct diff *d, struct diff_map *maps, size_t count)
{
	bool counts = strcmp(profile_get_measure(d->merged).unit, "count") == 0;
	int err;

	d->functions = calloc(profile_frame_count(d->merged) + 1, sizeof(*d->functions));
	err = d->functions ? add_up(d) : -ENOMEM;
	err = err ?: add_up_runs(d, maps, count);
	if (err)
		return err;
	set_units(d);
	diff_measure_load(d, maps, count);
	if (!d->whole[DIFF_BEFORE].total || !d->whole[DIFF_AFTER].total)
		d->state = DIFF_EMPTY;
	else if (!counts && !(d->whole[DIFF_BEFORE].times && d->whole[DIFF_AFTER].times))
		d->state = DIFF_NO_COUNTS;
	if (d->state != DIFF_JUDGED)
		return 0;
	err = diff_estimate_bursts(d, maps, count);
	err = err ?: diff_judge(d, maps, count);
	if (!err && d->options.basis != DIFF_SHARE)
		diff_judge_time(d, maps, count);
	return err;
}

static struct diff_map *make_maps(const struct diff_runs runs[DIFF_SIDES])
{
	struct diff_map *maps = calloc(runs[DIFF_BEFORE].count + runs[DIFF_AFTER].count, sizeof(*maps));
	size_t at = 0;

	for (int side = 0; side < DIFF_SIDES && maps; side++) {
		for (size_t i = 0; i < runs[side].count; i++, at++)
			maps[at] = (struct diff_map){.p = runs[side].profiles[i], .side = (enum diff_side)side};
	}
	return maps;
}

int diff_make(const struct diff_runs runs[DIFF_SIDES], const struct diff_options *options, struct diff **diff,
	      struct error *error)
{
	size_t count = runs[DIFF_BEFORE].count + runs[DIFF_AFTER].count;
	struct diff_map *maps = make_maps(runs);
	struct diff *d = calloc(1, sizeof(*d));
	int err = d && maps ? 0 : -ENOMEM;

	*diff = NULL;
	if (!err) {
		d->options = *options;
		d->only_other = PROFILE_NONE;
		memcpy(d->runs, runs, sizeof(d->runs));
		know_wholes(d, maps, count);
		err = check(d, maps, count, error);
	}
	err = err ?: diff_merge(d, maps, count);
	err = err ?: compare(d, maps, count);
	if (err == -ENOMEM)
		error_set(error, err, "out of memory while comparing %s with %s", runs[DIFF_BEFORE].names[0],
			  runs[DIFF_AFTER].names[0]);
	for (size_t i = 0; i < count && maps; i++)
		diff_map_free(&maps[i]);
	free(maps);
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
	free(diff);
}
