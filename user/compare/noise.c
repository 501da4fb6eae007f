// SPDX-License-Identifier: Apache-2.0
/* The statistics of a comparison: intervals, probabilities, the choice of changes, bursts. */
#include "compare/noise.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* In standard deviations; beyond it, probabilities are below the smallest double. */
#define DEVIATE_MOST 38.0
/* A deviate of Student's distribution may be far greater; any that is greater than this one is as sure. */
#define STUDENT_MOST 1e6
/* Steps of a bisection of these ranges, to some 1e-14 of them. */
#define HALVINGS 60

double noise_deviate(double probability)
{
	double low = 0, high = DEVIATE_MOST;

	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (noise_probability(middle) > probability)
			low = middle;
		else
			high = middle;
	}
	return low;
}

double noise_probability(double deviate)
{
	return erfc(deviate / M_SQRT2);
}

static double wallace(double freedom)
{
	return (8 * freedom + 3) / (8 * freedom + 1);
}

double noise_to_student(double deviate, double freedom)
{
	double z = deviate * wallace(freedom);

	return sqrt(freedom * expm1(z * z / freedom));
}

double noise_from_student(double deviate, double freedom)
{
	return sqrt(freedom * log1p(deviate * deviate / freedom)) / wallace(freedom);
}

/* INFINITY if the part is the total. */
static double odds(double part)
{
	return part < 1 ? part / (1 - part) : INFINITY;
}

double noise_find_change(const struct noise_side *before, const struct noise_side *after)
{
	double was = odds(before->count / before->total), is = odds(after->count / after->total);

	return is == was ? 0 : is / was - 1;
}

struct limits {
	double odds, low, high;
};

/* Computes the odds and their Wilson limits. */
static struct limits limits_of(const struct noise_side *side, double design_effect, double z)
{
	double total = side->total / design_effect, part = side->count / side->total;
	double shrink = 1 + z * z / total;
	double middle = (part + z * z / total / 2) / shrink;
	double half = z * sqrt(fmax(0, part * (1 - part)) / total + z * z / total / total / 4) / shrink;

	/* Rounding must not move a limit to the wrong side of the part. */
	return (struct limits){
		.odds = odds(part),
		.low = odds(fmin(part, fmax(0, middle - half))),
		.high = odds(fmax(part, fmin(1, middle + half))),
	};
}

struct noise_interval noise_find_interval(const struct noise_side *before, const struct noise_side *after,
					  double design_effect, double deviate)
{
	struct limits a = limits_of(before, design_effect, deviate), b = limits_of(after, design_effect, deviate);
	struct noise_interval found = {.low = -1, .high = INFINITY};
	/* Both ends solve (b - R a)^2 = (b - b's limit)^2 + R^2 (a's limit - a)^2 for the ratio R. */
	double product = a.odds * b.odds;

	if (isfinite(a.high) && isfinite(b.odds)) {
		double square = a.high * (2 * a.odds - a.high), rest = b.low * (2 * b.odds - b.low);
		double root = product + sqrt(fmax(0, product * product - square * rest));

		found.low = root > 0 ? rest / root - 1 : -1;
	}
	if (isfinite(b.high) && a.low > 0 && isfinite(a.odds)) {
		double square = a.low * (2 * a.odds - a.low), rest = b.high * (2 * b.odds - b.high);

		found.high = (product + sqrt(fmax(0, product * product - square * rest))) / square - 1;
	}
	return found;
}

double noise_find_deviate(const struct noise_side *before, const struct noise_side *after, double design_effect)
{
	double low = 0, high = STUDENT_MOST;

	if (noise_find_change(before, after) == 0)
		return 0;
	/* By ratios: half of the steps are for small deviates. */
	for (int i = 0; i < HALVINGS; i++) {
		double middle = low > 1 ? sqrt(low * high) : high > 2 ? 2 : (low + high) / 2;
		struct noise_interval at = noise_find_interval(before, after, design_effect, middle);

		if (at.low > 0 || at.high < 0)
			low = middle;
		else
			high = middle;
	}
	return low;
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

double noise_find_bursts(const struct noise_series *series, const struct noise_series *total)
{
	double part = total->sum > 0 ? series->sum / total->sum : 0;
	/* The sum of squared changes, from slice to slice, of the count's excess over its part of the total. */
	double squares = series->squares - 2 * part * series->products + part * part * total->squares;
	double found = squares / 2 * NOISE_SLICES / (NOISE_SLICES - 1);
	double independent_draws = series->sum * (1 - part);

	return independent_draws > 0 && found > independent_draws ? found / independent_draws : 1;
}
