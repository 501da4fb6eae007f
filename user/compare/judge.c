// SPDX-License-Identifier: Apache-2.0
/* Names the functions that changed, one after the other, and judges the CPU time of the whole. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "compare/diff_internal.h"
#include "compare/noise.h"
#include "compare/spread.h"

/* Changes that are named at most; with more of them there is little left to compare with. */
#define NAMED_MOST 8
/* The part of comparisons in which the smallest noticeable change would be named. */
#define POWER 0.8
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
	double *counts;   /* by row and run */
	double *totals;   /* by run: of what is not named */
	double *deviates; /* by row: of a normal distribution */
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
	j->counts = calloc(rows * runs + 1, sizeof(*j->counts));
	j->totals = calloc(runs, sizeof(*j->totals));
	j->deviates = calloc(rows + 1, sizeof(*j->deviates));
	j->sorted = calloc(rows + 1, sizeof(*j->sorted));
	if (!j->spread.rows || !j->frames || !j->counts || !j->totals || !j->deviates || !j->sorted)
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
	for (size_t r = 0; r < runs; r++)
		j->totals[r] = maps[r].total;
	for (int side = 0; side < DIFF_SIDES; side++)
		j->spread.runs[side] = d->runs[side].count;
	j->spread.totals = j->totals;
	return 0;
}

static void close_jury(struct jury *j)
{
	free(j->spread.rows);
	free(j->frames);
	free(j->counts);
	free(j->totals);
	free(j->deviates);
	free(j->sorted);
}

/* The row's samples, and those of it and all that is not named. */
static void get_sides(const struct jury *j, size_t row, struct noise_side sides[DIFF_SIDES])
{
	const struct spread_row *r = &j->spread.rows[row];

	for (int side = 0; side < DIFF_SIDES; side++) {
		sides[side].count = spread_sum(&j->spread, r->counts, side);
		sides[side].total = spread_sum(&j->spread, j->totals, side) + (r->apart ? sides[side].count : 0);
	}
}

/* Estimates how far runs differ, and how sure each row's change is. Returns 0 or -ENOMEM. */
static int estimate(struct jury *j)
{
	int err = spread_find_common(&j->spread);

	if (err < 0)
		return err;
	/* With one run a side, what is left after some are named may be too little: what was found with more holds. */
	if (!j->d->named)
		j->d->assumed = err == 1 || (j->spread.assumed > 0 && j->spread.sigma <= j->spread.assumed);
	spread_set_effects(&j->spread);
	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		const struct spread_row *row = &j->spread.rows[i];
		struct noise_side sides[DIFF_SIDES];

		get_sides(j, i, sides);
		j->deviates[i] =
			noise_from_student(noise_find_deviate(&sides[0], &sides[1], row->effect), row->freedom);
	}
	return 0;
}

/* Moves a row to those that are named, or back. */
static void set_apart(struct jury *j, size_t row, bool apart)
{
	size_t runs = j->spread.runs[DIFF_BEFORE] + j->spread.runs[DIFF_AFTER];

	j->spread.rows[row].apart = apart;
	j->d->named += apart ? 1 : -1;
	for (size_t r = 0; r < runs; r++)
		j->totals[r] += (apart ? -1 : 1) * j->spread.rows[row].counts[r];
}

/*
 * Returns whether a row's change is surer than another's. Of two functions that have nearly all samples, one grew if
 * the other shrank: then it is the one with fewer samples.
 */
static bool is_surer(const struct jury *j, size_t row, size_t than)
{
	struct noise_side a[DIFF_SIDES], b[DIFF_SIDES];
	double row_count, than_count;

	get_sides(j, row, a);
	get_sides(j, than, b);
	row_count = a[DIFF_BEFORE].count + a[DIFF_AFTER].count;
	than_count = b[DIFF_BEFORE].count + b[DIFF_AFTER].count;
	if (row_count + than_count >= ALONE * (a[DIFF_BEFORE].total + a[DIFF_AFTER].total))
		return row_count < than_count;
	return j->deviates[row] > j->deviates[than];
}

/* Returns the surest of the changes that pass, or the number of rows if none does. */
static size_t find_surest(struct jury *j)
{
	size_t surest = j->spread.nr_rows, count = 0;
	double limit;

	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		if (j->spread.rows[i].apart)
			continue;
		j->sorted[count++] = noise_probability(j->deviates[i]);
		if (surest == j->spread.nr_rows || is_surer(j, i, surest))
			surest = i;
	}
	return noise_choose(j->sorted, count, j->rate, &limit) ? surest : j->spread.nr_rows;
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

/*
 * The deviate of a row's interval: of those that are named, wider by the part of all that they are (Benjamini and
 * Yekutieli, Journal of the American Statistical Association 100, 2005, p. 71); of others, as wide as if it was the
 * only one that is named, so that it has no change in it.
 */
static double wide_deviate(const struct jury *j, const struct spread_row *row)
{
	double chosen = row->apart ? (double)j->d->named : 1;

	return noise_deviate(j->rate * chosen / (double)j->spread.nr_rows);
}

/* Returns the least sure of the named changes if what is left does not bear it out, or the number of rows. */
static size_t find_refuted(const struct jury *j)
{
	size_t least = j->spread.nr_rows;

	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		if (j->spread.rows[i].apart && (least == j->spread.nr_rows || j->deviates[i] < j->deviates[least]))
			least = i;
	}
	if (least < j->spread.nr_rows && j->deviates[least] >= wide_deviate(j, &j->spread.rows[least]))
		return j->spread.nr_rows;
	return least;
}

static int name_changes(struct jury *j)
{
	size_t rows = j->spread.nr_rows, row;
	int err = estimate(j);

	while (!err && j->d->named < NAMED_MOST && (row = find_surest(j)) < rows && leaves_rest(j, row)) {
		set_apart(j, row, true);
		err = estimate(j);
	}
	/* A change that was named first may have been the share that another one left or took. */
	while (!err && (row = find_refuted(j)) < rows) {
		set_apart(j, row, false);
		err = estimate(j);
	}
	return err;
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

static enum diff_verdict verdict(const struct jury *j, const struct spread_row *row, const struct noise_side sides[],
				 double change)
{
	if (row->apart && change > 0)
		return sides[DIFF_BEFORE].count > 0 ? DIFF_GREW : DIFF_NEW;
	if (row->apart)
		return sides[DIFF_AFTER].count > 0 ? DIFF_SHRANK : DIFF_GONE;
	return noise_probability(noise_find_deviate(&sides[0], &sides[1], row->sampling)) <=
			       j->rate / (double)j->spread.nr_rows
		       ? DIFF_SPREAD
		       : DIFF_NOISE;
}

static void set_results(struct jury *j)
{
	struct diff *d = j->d;

	d->tested = j->spread.nr_rows;
	d->spread = j->spread.sigma;
	for (int side = 0; side < DIFF_SIDES; side++)
		d->whole[side].rest = spread_sum(&j->spread, j->totals, side);
	for (size_t i = 0; i < j->spread.nr_rows; i++) {
		const struct spread_row *row = &j->spread.rows[i];
		struct diff_function *f = &d->functions[j->frames[i]];
		struct noise_side sides[DIFF_SIDES];
		struct noise_interval interval;

		get_sides(j, i, sides);
		if (sides[DIFF_BEFORE].count >= sides[DIFF_BEFORE].total &&
		    sides[DIFF_AFTER].count >= sides[DIFF_AFTER].total) {
			d->only_other = j->frames[i];
			continue;
		}
		interval = noise_find_interval(&sides[0], &sides[1], row->effect,
					       noise_to_student(wide_deviate(j, row), row->freedom));
		f->change = noise_find_change(&sides[0], &sides[1]);
		f->low = interval.low;
		f->high = interval.high;
		f->noticeable = find_noticeable(j, row, sides);
		f->verdict = verdict(j, row, sides, f->change);
		if (row->apart)
			continue;
		if (d->least_noticeable <= 0 || f->noticeable < d->least_noticeable)
			d->least_noticeable = f->noticeable;
		d->most_noticeable = fmax(d->most_noticeable, f->noticeable);
		if (d->named && sides[0].count + sides[1].count >= ALONE * (sides[0].total + sides[1].total))
			d->only_other = j->frames[i];
	}
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
