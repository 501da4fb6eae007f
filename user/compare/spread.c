// SPDX-License-Identifier: Apache-2.0
/* How far runs of one program differ beyond sampling: a common standard deviation, and a design effect per function. */
#include "compare/spread.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Degrees of freedom that the common estimate is worth, chosen on recorded runs; fewer functions are worth less. */
#define PRIOR 10.0
/* A sigma of 100 %: runs that differ by more are not runs of one program. */
#define SIGMA_MOST 1.0
#define HALVINGS   50
/* In standard deviations: of functions without a change, one of seven is as far from the others. */
#define DOUBT_FROM 1.5
/* The median of a squared normal deviate: of chi-squared with one degree of freedom. */
#define MEDIAN_OF_SQUARES 0.4549364

static size_t nr_runs(const struct spread *s)
{
	return s->runs[0] + s->runs[1];
}

double spread_sum(const struct spread *s, const double *by_run, int side)
{
	size_t first = side ? s->runs[0] : 0;
	double sum = 0;

	for (size_t r = first; r < first + s->runs[side]; r++)
		sum += by_run[r];
	return sum;
}

double spread_total(const struct spread *s, const struct spread_row *row, size_t run)
{
	return row->counts[run] + row->scale * (s->reference[run] - row->weight * row->counts[run]);
}

void spread_set_reference(struct spread *s)
{
	for (size_t r = 0; r < nr_runs(s); r++)
		s->reference[r] = s->small[r];
	for (size_t i = 0; i < s->nr_rows; i++) {
		struct spread_row *row = &s->rows[i];

		row->scale = fmax(row->effect, row->bursts);
		row->weight = row->apart ? 0 : fmin(1, DOUBT_FROM / row->deviate) / row->scale;
		for (size_t r = 0; r < nr_runs(s); r++)
			s->reference[r] += row->weight * row->counts[r];
	}
}

/* A row over all runs, as it would be without a change. */
struct pooled {
	double count; /* mean, by run */
	double rest;  /* the part of the total that is not the row's */
	double phi;   /* variance within the sides, in units of independent draws; 0 with one run a side */
};

static struct pooled pool(const struct spread *s, const struct spread_row *row)
{
	double counts[SPREAD_SIDES] = {0}, totals[SPREAD_SIDES] = {0}, squares = 0;
	size_t freedom = nr_runs(s) - SPREAD_SIDES, run = 0;

	for (size_t r = 0; r < nr_runs(s); r++) {
		int side = r >= s->runs[0];

		counts[side] += row->counts[r];
		totals[side] += spread_total(s, row, r);
	}
	for (int side = 0; side < SPREAD_SIDES; side++) {
		double part = counts[side] / totals[side];

		for (size_t i = 0; i < s->runs[side]; i++, run++) {
			double total = spread_total(s, row, run), apart = row->counts[run] - total * part;

			if (part > 0 && part < 1 && total > 0)
				squares += apart * apart / (total * part * (1 - part));
		}
	}
	return (struct pooled){
		.count = (counts[0] + counts[1]) / (double)nr_runs(s),
		.rest = 1 - (counts[0] + counts[1]) / (totals[0] + totals[1]),
		.phi = freedom ? squares / (double)freedom : 0,
	};
}

/*
 * Sets what is common from a place between 0, where draws are independent, and 2: up to 1 a growing part of the bursts
 * is chance, from there on sigma grows.
 */
static void set_common(struct spread *s, double place)
{
	s->chance = fmin(place, 1);
	s->sigma = SIGMA_MOST * fmax(place - 1, 0);
}

static double sampling_effect(const struct spread *s, const struct spread_row *row)
{
	return 1 + s->chance * (row->bursts - 1);
}

/* The design effect of a row that varies by no more than what is common. */
static double common_effect(const struct spread *s, const struct spread_row *row, const struct pooled *p)
{
	return sampling_effect(s, row) + p->count * s->sigma * s->sigma;
}

/* How far one row may vary, in units of what is common, before it is taken for one of another kind. */
static double most_of_phi(double freedom)
{
	return 1 + 4 / sqrt(freedom);
}

/* Returns whether counts vary by more than what is common; single rows cannot rule it. */
static bool varies_more(const struct spread *s, const struct pooled *pooled, double freedom)
{
	double sum = 0, most = most_of_phi(freedom);

	for (size_t i = 0; i < s->nr_rows; i++) {
		const struct pooled *p = &pooled[i];
		double effect = common_effect(s, &s->rows[i], p);

		if (!s->rows[i].apart)
			sum += p->count * p->rest / effect * (fmin(p->phi / effect, most) - 1);
	}
	return sum > 0;
}

/* The logarithm of a row's ratio of shares, and its variance by what is common. */
struct difference {
	double log_ratio, variance, square;
};

static int by_log_ratio(const void *a, const void *b)
{
	double x = ((const struct difference *)a)->log_ratio, y = ((const struct difference *)b)->log_ratio;

	return (x > y) - (x < y);
}

static int by_square(const void *a, const void *b)
{
	double x = ((const struct difference *)a)->square, y = ((const struct difference *)b)->square;

	return (x > y) - (x < y);
}

/* The log ratio that half of the rows, by the surety of theirs, are below. */
static double weighted_median(struct difference *d, size_t count)
{
	double all = 0, below = 0;
	size_t i;

	qsort(d, count, sizeof(*d), by_log_ratio);
	for (i = 0; i < count; i++)
		all += 1 / d[i].variance;
	for (i = 0; i < count - 1 && below + 1 / d[i].variance < all / 2; i++)
		below += 1 / d[i].variance;
	return d[i].log_ratio;
}

static double median_square(struct difference *d, size_t count, double center)
{
	for (size_t i = 0; i < count; i++) {
		double apart = d[i].log_ratio - center;

		d[i].square = apart * apart / d[i].variance;
	}
	qsort(d, count, sizeof(*d), by_square);
	return (d[(count - 1) / 2].square + d[count / 2].square) / 2;
}

/* Lists the rows that are on both sides. Returns their number. */
static size_t list_differences(const struct spread *s, const struct pooled *pooled, struct difference *d)
{
	size_t count = 0;

	for (size_t i = 0; i < s->nr_rows; i++) {
		const double *n = s->rows[i].counts;

		if (s->rows[i].apart || n[0] <= 0 || n[1] <= 0)
			continue;
		d[count].log_ratio = log(n[1] / n[0]);
		/* Both runs vary. */
		d[count++].variance = sampling_effect(s, &s->rows[i]) * pooled[i].rest * (1 / n[0] + 1 / n[1]) +
				      2 * s->sigma * s->sigma;
	}
	return count;
}

/* Returns whether half of the rows differ by more than what is common explains. */
static bool differ_more(const struct spread *s, const struct pooled *pooled, struct difference *d)
{
	size_t count = list_differences(s, pooled, d);

	return median_square(d, count, weighted_median(d, count)) > MEDIAN_OF_SQUARES;
}

int spread_find_common(struct spread *s)
{
	struct pooled *pooled = calloc(s->nr_rows + 1, sizeof(*pooled));
	struct difference *d = calloc(s->nr_rows + 1, sizeof(*d));
	double freedom = (double)(nr_runs(s) - SPREAD_SIDES), low = 0, high = 2;
	int err = pooled && d ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->nr_rows && !err; i++)
		pooled[i] = pool(s, &s->rows[i]);
	if (!err && freedom <= 0 && list_differences(s, pooled, d) < SPREAD_FEWEST)
		err = 1;
	for (int i = 0; i <= HALVINGS && !err; i++) {
		double middle = i ? (low + high) / 2 : 0;

		set_common(s, middle);
		if (freedom > 0 ? varies_more(s, pooled, freedom) : differ_more(s, pooled, d))
			low = middle;
		else
			high = middle;
		if (high <= 0)
			break;
	}
	if (!err) {
		set_common(s, high);
		s->sigma = fmax(s->sigma, s->assumed);
	}
	free(pooled);
	free(d);
	return err;
}

void spread_set_effects(struct spread *s)
{
	double freedom = (double)(nr_runs(s) - SPREAD_SIDES), prior = PRIOR;
	size_t rows_in_common = 0;

	for (size_t i = 0; i < s->nr_rows; i++)
		rows_in_common += !s->rows[i].apart;
	/* Shares add up to one, so that one of two functions is the mirror of the other; and a few say little. */
	if (freedom > 0)
		prior = fmin(PRIOR, fmax(0, (double)rows_in_common - 2));
	for (size_t i = 0; i < s->nr_rows; i++) {
		struct spread_row *row = &s->rows[i];
		struct pooled p = pool(s, row);
		double common = common_effect(s, row, &p), least = 1 + p.count * s->assumed * s->assumed;
		/* What varies by far more than the others do has less in common with them. */
		double like = p.phi > 0 ? fmin(1, most_of_phi(freedom) * common / p.phi) : 1;
		double own_prior = prior * like * like;

		row->freedom = own_prior + freedom;
		row->sampling = sampling_effect(s, row);
		row->effect = fmax(least, (own_prior * common + freedom * p.phi) / row->freedom);
	}
}
