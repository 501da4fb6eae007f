// SPDX-License-Identifier: Apache-2.0
/* Names the functions that changed, one after the other, and judges the CPU time of the whole. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/diff_internal.h"
#include "compare/noise.h"
#include "compare/spread.h"

/* Changes that are named at most; with more of them there is little left to compare with. */
#define NAMED_MOST 8
/* A change is likely if one as sure is found in at most this part of comparisons without a change. */
#define LIKELY_CHANCE 0.1
/* The part of comparisons in which the smallest noticeable change would be named. */
#define POWER 0.8
/* Rounds in which the reference and what depends on it are estimated in turn: more change no verdict. */
#define ROUNDS 3
/*
 * How far runs are assumed to differ where one run a side has too few functions to see it: the most that shares of
 * recorded programs differed by.
 */
#define SIGMA_UNSEEN 0.12
/* From this part of all on, one function, or two, leave little to compare with. */
#define ALONE 0.9

struct jury {
	struct diff *d;
	double rate; /* part of the named changes that may be chance */
	struct spread spread;
	uint32_t *frames; /* by row: of the merged profile */
	bool *likely;     /* by row: it is apart, and not sure enough to be named */
	double *counts;   /* by row and run */
	double *totals;   /* by run: of what is not named */
	double *small;    /* by run: of functions that are not judged */
	double *reference;
	double *sorted;
};

static double share(const struct diff *d, uint64_t value, int side)
{
	return (double)value / (double)d->whole[side].total;
}

static bool has_enough(const struct diff *d, const struct diff_function *f)
{
	const double least = DIFF_LEAST_PERCENT / 100.0;
	bool is_all = true;

	for (int side = 0; side < DIFF_SIDES; side++)
		is_all &= f->self[side] == d->whole[side].total;
	return !is_all && f->self[DIFF_BEFORE] + f->self[DIFF_AFTER] >= DIFF_LEAST_SAMPLES &&
	       (share(d, f->self[DIFF_BEFORE], DIFF_BEFORE) >= least ||
		share(d, f->self[DIFF_AFTER], DIFF_AFTER) >= least);
}

static int open_jury(struct jury *j, const struct diff_map *maps, size_t runs)
{
	const struct diff *d = j->d;
	uint32_t frames = profile_frame_count(d->merged);
	size_t rows = 0;

	for (uint32_t i = 0; i < frames; i++)
		rows += has_enough(d, &d->functions[i]);
	j->spread.rows = calloc(rows + 1, sizeof(*j->spread.rows));
	j->frames = calloc(rows + 1, sizeof(*j->frames));
	j->likely = calloc(rows + 1, sizeof(*j->likely));
	j->counts = calloc(rows * runs + 1, sizeof(*j->counts));
	j->totals = calloc(runs, sizeof(*j->totals));
	j->small = calloc(runs, sizeof(*j->small));
	j->reference = calloc(runs, sizeof(*j->reference));
	j->sorted = calloc(rows + 1, sizeof(*j->sorted));
	if (!j->spread.rows || !j->frames || !j->likely || !j->counts || !j->totals || !j->small || !j->reference ||
	    !j->sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++) {
		size_t row = j->spread.nr_rows;

		if (!has_enough(d, &d->functions[i]))
			continue;
		for (size_t r = 0; r < runs; r++)
			j->counts[row * runs + r] = maps[r].self[i];
		j->frames[row] = i;
		j->spread.rows[row].counts = &j->counts[row * runs];
		j->spread.rows[row].bursts = d->functions[i].bursts;
		j->spread.nr_rows++;
	}
	for (size_t r = 0; r < runs; r++) {
		j->totals[r] = j->small[r] = maps[r].total;
		for (size_t i = 0; i < j->spread.nr_rows; i++)
			j->small[r] -= j->counts[i * runs + r];
	}
	for (int side = 0; side < DIFF_SIDES; side++)
		j->spread.runs[side] = d->runs[side].count;
	j->spread.small = j->small;
	j->spread.reference = j->reference;
	return 0;
}

static void close_jury(struct jury *j)
{
	free(j->spread.rows);
	free(j->frames);
	free(j->likely);
	free(j->counts);
	free(j->totals);
	free(j->small);
	free(j->reference);
	free(j->sorted);
}

/* The row's samples, and those of it and what it is measured against. */
static void get_sides(const struct jury *j, size_t row, struct noise_side sides[DIFF_SIDES])
{
	const struct spread_row *r = &j->spread.rows[row];

	memset(sides, 0, DIFF_SIDES * sizeof(*sides));
	for (size_t run = 0; run < j->spread.runs[DIFF_BEFORE] + j->spread.runs[DIFF_AFTER]; run++) {
		struct noise_side *side = &sides[run < j->spread.runs[DIFF_BEFORE] ? DIFF_BEFORE : DIFF_AFTER];

		side->count += r->counts[run];
		side->total += spread_total(&j->spread, r, run);
	}
}

/* Estimates how far runs differ, and how sure each row's change is. Returns 0 or -ENOMEM. */
static int estimate_once(struct jury *j)
{
	int err;

	spread_set_reference(&j->spread);
	err = spread_find_common(&j->spread);
	if (err < 0)
		return err;
	/* With one run a side, what is left after some are named may be too little: what was found with more holds. */
	if (!j->d->named)
		j->d->assumed = err == 1 || (j->spread.assumed > 0 && j->spread.sigma <= j->spread.assumed);
	spread_set_effects(&j->spread);
	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		struct spread_row *row = &j->spread.rows[i];
		struct noise_side sides[DIFF_SIDES];

		get_sides(j, i, sides);
		row->deviate = noise_from_student(noise_find_deviate(&sides[0], &sides[1], row->effect), row->freedom);
	}
	return 0;
}

/* The reference depends on the rows' effects and deviates, and these on the reference. */
static int estimate(struct jury *j)
{
	int err = 0;

	for (int i = 0; i < ROUNDS && !err; i++)
		err = estimate_once(j);
	return err;
}

/* Takes a row out of what the others are measured against, or puts it back. */
static void set_apart(struct jury *j, size_t row, bool apart)
{
	size_t runs = j->spread.runs[DIFF_BEFORE] + j->spread.runs[DIFF_AFTER];

	j->spread.rows[row].apart = apart;
	for (size_t r = 0; r < runs; r++)
		j->totals[r] += (apart ? -1 : 1) * j->spread.rows[row].counts[r];
}

static double sum_of(const struct jury *j, const double *by_run)
{
	return spread_sum(&j->spread, by_run, DIFF_BEFORE) + spread_sum(&j->spread, by_run, DIFF_AFTER);
}

/*
 * Returns whether a row's change is surer than another's. Of two functions that have nearly all samples, one grew if
 * the other shrank: then it is the one with fewer samples.
 */
static bool is_surer(const struct jury *j, size_t row, size_t than)
{
	double row_count = sum_of(j, j->spread.rows[row].counts), than_count = sum_of(j, j->spread.rows[than].counts);

	if (row_count + than_count >= ALONE * sum_of(j, j->totals))
		return row_count < than_count;
	return j->spread.rows[row].deviate > j->spread.rows[than].deviate;
}

/* Returns the surest of the changes that are not apart, or the number of rows. */
static size_t find_surest(const struct jury *j)
{
	size_t surest = j->spread.nr_rows;

	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		if (!j->spread.rows[i].apart && (surest == j->spread.nr_rows || is_surer(j, i, surest)))
			surest = i;
	}
	return surest;
}

/* Returns the surest of the changes if any passes, or the number of rows. */
static size_t find_passing(struct jury *j)
{
	size_t count = 0;
	double limit;

	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		if (!j->spread.rows[i].apart)
			j->sorted[count++] = noise_probability(j->spread.rows[i].deviate);
	}
	return noise_choose(j->sorted, count, j->rate, &limit) ? find_surest(j) : j->spread.nr_rows;
}

/* Returns whether there would be samples on both sides to compare with. */
static bool leaves_rest(const struct jury *j, size_t row)
{
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (spread_sum(&j->spread, j->totals, side) - spread_sum(&j->spread, j->spread.rows[row].counts, side) <
		    DIFF_LEAST_SAMPLES)
			return false;
	}
	return true;
}

static bool is_named(const struct jury *j, size_t row)
{
	return j->spread.rows[row].apart && !j->likely[row];
}

/*
 * The deviate of a row's interval: of those that are named, wider by the part of all that they are (Benjamini and
 * Yekutieli, Journal of the American Statistical Association 100, 2005, p. 71); of others, as wide as if it was the
 * only one that is named, so that it has no change in it.
 */
static double wide_deviate(const struct jury *j, size_t row)
{
	double chosen = is_named(j, row) ? (double)j->d->named : 1;

	return noise_deviate(j->rate * chosen / (double)j->spread.nr_rows);
}

static size_t count_apart(const struct jury *j)
{
	size_t count = 0;

	for (size_t i = 0; i < j->spread.nr_rows; i++)
		count += j->spread.rows[i].apart;
	return count;
}

/* Sets the number of functions that are named. */
static void count_named(struct jury *j)
{
	j->d->named = 0;
	for (size_t i = 0; i < j->spread.nr_rows; i++)
		j->d->named += is_named(j, i);
}

/* The part of comparisons without a change in which one of the functions differs as surely as this one. */
static double find_chance(const struct jury *j, size_t row)
{
	return fmin(1, noise_probability(j->spread.rows[row].deviate) * (double)j->spread.nr_rows);
}

/* Returns the least sure of the changes that are apart if what is left does not bear it out, or the number of rows. */
static size_t find_refuted(const struct jury *j, bool likely)
{
	size_t least = j->spread.nr_rows;

	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		if (j->spread.rows[i].apart && j->likely[i] == likely &&
		    (least == j->spread.nr_rows || j->spread.rows[i].deviate < j->spread.rows[least].deviate))
			least = i;
	}
	if (least == j->spread.nr_rows)
		return least;
	if (likely)
		return find_chance(j, least) > LIKELY_CHANCE ? least : j->spread.nr_rows;
	return j->spread.rows[least].deviate < wide_deviate(j, least) ? least : j->spread.nr_rows;
}

/*
 * Takes the surest of what is left for changed as long as it is likely, so that it does not make others look as if they
 * had changed the other way.
 */
static int find_likely(struct jury *j)
{
	size_t rows = j->spread.nr_rows, row;
	int err = 0;

	while (!err && count_apart(j) < NAMED_MOST && (row = find_surest(j)) < rows &&
	       find_chance(j, row) <= LIKELY_CHANCE && leaves_rest(j, row)) {
		j->likely[row] = true;
		set_apart(j, row, true);
		err = estimate(j);
	}
	/* Without them, those that were named are judged anew. */
	while (!err && (row = find_refuted(j, false)) < rows) {
		j->likely[row] = true;
		count_named(j);
	}
	while (!err && (row = find_refuted(j, true)) < rows) {
		j->likely[row] = false;
		set_apart(j, row, false);
		err = estimate(j);
	}
	return err;
}

static int name_changes(struct jury *j)
{
	size_t rows = j->spread.nr_rows, row;
	int err = estimate(j);

	while (!err && j->d->named < NAMED_MOST && (row = find_passing(j)) < rows && leaves_rest(j, row)) {
		set_apart(j, row, true);
		count_named(j);
		err = estimate(j);
	}
	/* A change that was named first may have been the share that another one left or took. */
	while (!err && (row = find_refuted(j, false)) < rows) {
		set_apart(j, row, false);
		count_named(j);
		err = estimate(j);
	}
	return err ?: find_likely(j);
}

/* Returns the smallest relative change of a row that would be named in POWER of such comparisons. */
static double find_noticeable(const struct jury *j, const struct spread_row *row, const struct noise_side sides[])
{
	double part = (sides[0].count + sides[1].count) / (sides[0].total + sides[1].total);
	double variance = row->effect / (part * (1 - part)) * (1 / sides[0].total + 1 / sides[1].total);
	double deviate = noise_to_student(noise_deviate(j->rate / (double)j->spread.nr_rows), row->freedom) +
			 noise_to_student(noise_deviate(2 * (1 - POWER)), row->freedom);

	return expm1(deviate * sqrt(variance));
}

static enum diff_verdict verdict(const struct jury *j, size_t i, const struct noise_side sides[], double change)
{
	const struct spread_row *row = &j->spread.rows[i];

	if (row->apart && j->likely[i])
		return DIFF_LIKELY;
	if (row->apart && change > 0)
		return sides[DIFF_BEFORE].count > 0 ? DIFF_GREW : DIFF_NEW;
	if (row->apart)
		return sides[DIFF_AFTER].count > 0 ? DIFF_SHRANK : DIFF_GONE;
	return noise_probability(noise_find_deviate(&sides[0], &sides[1], row->sampling)) <=
			       j->rate / (double)j->spread.nr_rows
		       ? DIFF_SPREAD
		       : DIFF_NOISE;
}

/* Makes amounts after such that what did not change is as large on both sides. */
static void set_scale(struct jury *j)
{
	struct diff_whole *whole = j->d->whole;
	double units = whole[DIFF_BEFORE].units_per_sample * spread_sum(&j->spread, j->reference, DIFF_BEFORE) /
		       spread_sum(&j->spread, j->reference, DIFF_AFTER);

	j->d->pace = whole[DIFF_AFTER].units_per_sample / units;
	whole[DIFF_AFTER].units_per_sample = units;
}

/* Returns the relative change of the amounts that are shown. */
static double shown_change(const struct diff *d, const struct diff_function *f)
{
	double before = diff_amount(d, f->self[DIFF_BEFORE], DIFF_BEFORE);
	double after = diff_amount(d, f->self[DIFF_AFTER], DIFF_AFTER);

	return after == before ? 0 : after / before - 1;
}

static void set_result(struct jury *j, size_t i)
{
	const struct spread_row *row = &j->spread.rows[i];
	struct diff *d = j->d;
	struct diff_function *f = &d->functions[j->frames[i]];
	struct noise_side sides[DIFF_SIDES];
	struct noise_interval interval;

	get_sides(j, i, sides);
	if (sides[DIFF_BEFORE].count >= sides[DIFF_BEFORE].total &&
	    sides[DIFF_AFTER].count >= sides[DIFF_AFTER].total) {
		d->only_other = j->frames[i];
		return;
	}
	interval = noise_find_interval(&sides[0], &sides[1], row->effect,
				       noise_to_student(wide_deviate(j, i), row->freedom));
	f->change = shown_change(d, f);
	f->low = interval.low;
	f->high = interval.high;
	f->chance = find_chance(j, i);
	f->noticeable = find_noticeable(j, row, sides);
	f->verdict = verdict(j, i, sides, f->change);
	if (row->apart)
		return;
	if (d->least_noticeable <= 0 || f->noticeable < d->least_noticeable)
		d->least_noticeable = f->noticeable;
	d->most_noticeable = fmax(d->most_noticeable, f->noticeable);
	if (count_apart(j) && sides[0].count + sides[1].count >= ALONE * sum_of(j, j->totals))
		d->only_other = j->frames[i];
}

static void set_results(struct jury *j)
{
	struct diff *d = j->d;

	d->tested = j->spread.nr_rows;
	d->spread = j->spread.sigma;
	d->likely = count_apart(j) - d->named;
	for (int side = 0; side < DIFF_SIDES; side++)
		d->whole[side].rest = spread_sum(&j->spread, j->totals, side);
	set_scale(j);
	for (size_t i = 0; i < j->spread.nr_rows; i++)
		set_result(j, i);
}

int diff_judge(struct diff *d, const struct diff_map *maps, size_t count)
{
	struct jury j = {.d = d, .rate = 1 - d->options.confidence};
	int err = open_jury(&j, maps, count);

	j.spread.assumed = d->options.tolerance;
	if (d->options.tolerance < 0)
		j.spread.assumed = diff_is_single(d) ? DIFF_ASSUMED_PERCENT / 100.0 : 0;
	j.spread.sigma = fmax(SIGMA_UNSEEN, j.spread.assumed);
	j.spread.chance = 1;
	if (!err && !j.spread.nr_rows)
		d->state = DIFF_FEW_FUNCTIONS;
	if (!err && j.spread.nr_rows)
		err = name_changes(&j);
	if (!err && j.spread.nr_rows)
		set_results(&j);
	close_jury(&j);
	return err;
}

/*
 * Adds the squared distances of the logarithms of a side's CPU times from their mean to *squares. Returns false if a
 * run has none.
 */
static bool add_up_logs(const struct diff *d, const struct diff_map *maps, size_t count, enum diff_side side,
			double *squares)
{
	double values = 0, sum = 0;

	for (size_t i = 0; i < count; i++) {
		double seconds = 1, value;

		if (maps[i].side != side)
			continue;
		if (d->options.basis == DIFF_RATE)
			seconds = strtod(profile_find_fact(maps[i].p, PROFILE_FACT_DURATION), NULL);
		if (maps[i].total <= 0)
			return false;
		value = log(maps[i].total / seconds);
		values += value;
		sum += value * value;
	}
	*squares += fmax(0, sum - values * values / (double)d->runs[side].count);
	return true;
}

void diff_judge_time(struct diff *d, const struct diff_map *maps, size_t count)
{
	struct diff_time *t = &d->time;
	double squares = 0, inverse = 0, samples = 0, freedom = (double)count - DIFF_SIDES, error, deviate, log_change;

	t->change = d->whole[DIFF_AFTER].time_s / d->whole[DIFF_BEFORE].time_s - 1;
	for (int side = 0; side < DIFF_SIDES; side++) {
		if (!add_up_logs(d, maps, count, (enum diff_side)side, &squares))
			return;
		inverse += 1 / (double)d->runs[side].count;
		samples += (double)d->whole[side].total;
	}
	t->judged = freedom > 0;
	if (!t->judged)
		return;
	log_change = log1p(t->change);
	/* Sampling alone varies a run's total by the square root of its samples. */
	t->spread = sqrt(fmax(squares / freedom, (double)count / samples));
	error = t->spread * sqrt(inverse);
	deviate = noise_to_student(noise_deviate(1 - d->options.confidence), freedom);
	t->low = expm1(log_change - deviate * error);
	t->high = expm1(log_change + deviate * error);
	t->changed = t->low > 0 || t->high < 0;
	t->noticeable = expm1((deviate + noise_to_student(noise_deviate(2 * (1 - POWER)), freedom)) * error);
}
