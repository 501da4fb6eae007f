// SPDX-License-Identifier: Apache-2.0
/* The statistics of a comparison: score intervals, probabilities, the choice of changes, design effects. */
#include "compare/noise.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* In standard deviations; beyond it, probabilities are below the smallest double. */
#define DEVIATE_MOST 38.0
/* Steps of a bisection of that range, to some 1e-14 of it. */
#define HALVINGS 50

static double length(double x, double y)
{
	return sqrt(x * x + y * y);
}

double noise_deviate(double probability)
{
	double low = 0, high = DEVIATE_MOST;

	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / M_SQRT2) > probability)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Returns the side with its counts divided by the design effect, as if its samples were independent. */
static struct noise_side independent(const struct noise_side *side, double design_effect)
{
	return (struct noise_side){
		.count = side->count / design_effect,
		.total = side->total / design_effect,
		.units_per_sample = side->units_per_sample * design_effect,
	};
}

/*
 * Computes the distances of a side's score limits from its count, below and above: Wilson's limits, or for an infinite
 * total those of a Poisson count.
 */
static void score_limits(const struct noise_side *side, double z, double *below, double *above)
{
	double part = side->count / side->total, shrink = 1 + z * z / side->total;
	double middle = (side->count + z * z / 2) / shrink;
	double half = z * sqrt(fmax(0, side->count * (1 - part)) + z * z / 4) / shrink;

	/* Rounding must not move a limit to the wrong side of the count. */
	*below = fmax(0, side->count - (middle - half));
	*above = fmax(0, middle + half - side->count);
}

struct noise_interval noise_find_interval(const struct noise_side *before, const struct noise_side *after,
					  double design_effect, double deviate)
{
	struct noise_side a = independent(before, design_effect), b = independent(after, design_effect);
	double difference = b.count * b.units_per_sample - a.count * a.units_per_sample;
	double a_below, a_above, b_below, b_above;

	score_limits(&a, deviate, &a_below, &a_above);
	score_limits(&b, deviate, &b_below, &b_above);
	return (struct noise_interval){
		.low = difference - length(b_below * b.units_per_sample, a_above * a.units_per_sample),
		.high = difference + length(b_above * b.units_per_sample, a_below * a.units_per_sample),
	};
}

/* Returns whether one side exceeds the other at that deviate, even if the other is raised by the tolerance. */
static bool exceeds(const struct noise_side *more, const struct noise_side *less, double design_effect,
		    double tolerance, double deviate)
{
	struct noise_side greater = *less;

	greater.units_per_sample *= 1 + tolerance;
	return noise_find_interval(&greater, more, design_effect, deviate).low > 0;
}

double noise_probability(const struct noise_side *before, const struct noise_side *after, double design_effect,
			 double tolerance, double least)
{
	double low = least, high = DEVIATE_MOST;

	if (!exceeds(after, before, design_effect, tolerance, least) &&
	    !exceeds(before, after, design_effect, tolerance, least))
		return 1;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (exceeds(after, before, design_effect, tolerance, middle) ||
		    exceeds(before, after, design_effect, tolerance, middle))
			low = middle;
		else
			high = middle;
	}
	return erfc(low / M_SQRT2);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

size_t noise_choose(double *probabilities, size_t count, double rate, double *limit)
{
	if (count)
		qsort(probabilities, count, sizeof(*probabilities), by_size);
	for (size_t i = count; i > 0; i--) {
		if (probabilities[i - 1] <= rate * (double)i / (double)count) {
			*limit = probabilities[i - 1];
			return i;
		}
	}
	*limit = -1;
	return 0;
}

void noise_end_slice(struct noise_series *series, const struct noise_series *total, unsigned slice)
{
	if (slice) {
		series->change = series->current - series->last;
		series->squares += series->change * series->change;
		series->products += series->change * total->change;
	}
	series->sum += series->current;
	series->last = series->current;
	series->current = 0;
}

double noise_design_effect(const struct noise_series *series, const struct noise_series *total)
{
	double part = total && total->sum > 0 ? series->sum / total->sum : 0;
	/* The sum of squared changes, from slice to slice, of the count's excess over its part of the total. */
	double squares =
		total ? series->squares - 2 * part * series->products + part * part * total->squares : series->squares;
	double found = squares / 2 * NOISE_SLICES / (NOISE_SLICES - 1);
	double independent_draws = series->sum * (1 - part);

	return independent_draws > 0 && found > independent_draws ? found / independent_draws : 1;
}
