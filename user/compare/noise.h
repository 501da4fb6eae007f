// SPDX-License-Identifier: Apache-2.0
/*
 * Estimates how far two counts of samples differ by chance alone. Works on numbers only, not on profiles.
 *
 * A count is modelled as a draw from a binomial distribution, as a part of a known total. But samples are not
 * independent draws: code that runs in bursts is hit by several samples in a row or by none, and two runs of the same
 * program differ by more than sampling explains. Both are expressed as a design effect: the ratio of the variance to
 * that of independent draws (Kish, Survey Sampling, 1965). Counts and totals are divided by it, as is usual for draws
 * in clusters (Korn and Graubard, Survey Methodology 24, 1998, p. 193). spread.h estimates it from several runs.
 *
 * - Change: the ratio of odds, after to before. A function that takes 25 % longer has 25 % higher odds against all that
 *   did not change, whatever its share.
 * - Interval: Wilson's score limits of both odds, their distances squared and added for a ratio (MOVER-R: Donner and
 *   Zou, Statistical Methods in Medical Research 21, 2012, p. 347). It holds down to small counts, and at zero.
 * - Deviates of Student's distribution from those of a normal one and back: Wallace, Annals of Mathematical Statistics
 *   30, 1959, p. 1124.
 * - Many comparisons: Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995, p. 289).
 * - Bursts: from successive differences between slices of time (von Neumann and others, Annals of Mathematical
 *   Statistics 12, 1941, p. 153; Wolter, Introduction to Variance Estimation, 2007, chapter 8). Changes slower than
 *   from slice to slice count as phases of the program and not as chance.
 */
#ifndef COMPARE_NOISE_H
#define COMPARE_NOISE_H

#include <stddef.h>

/*
 * Number of slices of a run. With fewer, more of a program's phases would count as bursts; with more, longer bursts
 * would be missed: bursts of a 300th of the run are fully allowed for, those of a 100th only in part. The standard
 * error of the design effect is then some 30 % (the square root of 3 / 31).
 */
#define NOISE_SLICES 32

/* One side of a comparison: a count that is a part of a total above 0. */
struct noise_side {
	double count, total;
};

/* An interval of the relative change of odds: -1 for all gone, 0 for none, INFINITY where there was nothing. */
struct noise_interval {
	double low, high;
};

/* Returns the distance from the mean of a normal distribution, in standard deviations, for a probability of 0 to 1. */
double noise_deviate(double probability);

/* Returns the two-sided probability of that deviate of a normal distribution. */
double noise_probability(double deviate);

/* Return the deviate of Student's distribution of as many degrees of freedom with a normal one's probability, and back.
 */
double noise_to_student(double deviate, double freedom);
double noise_from_student(double deviate, double freedom);

/* Returns the relative change of the odds, from before to after: -1 to INFINITY; 0 if there is nothing on both sides.
 */
double noise_find_change(const struct noise_side *before, const struct noise_side *after);

/* Returns the interval at that deviate; design_effect as above, 1 for independent draws. */
struct noise_interval noise_find_interval(const struct noise_side *before, const struct noise_side *after,
					  double design_effect, double deviate);

/* Returns the deviate at which the interval begins or ends at 0: how surely there is a change. */
double noise_find_deviate(const struct noise_side *before, const struct noise_side *after, double design_effect);

/*
 * Chooses the differences that are more than chance, so that at most a part of `rate`, 0 to 1, of those chosen is
 * expected to be chance: all whose probability is at most *limit, which is below 0 if none is chosen. Sorts the
 * probabilities, and returns how many were chosen.
 */
size_t noise_choose(double *probabilities, size_t count, double rate, double *limit);

/* A count, slice by slice. Zero it before use. */
struct noise_series {
	double current;   /* count of the current slice; the caller adds to it */
	double last, sum; /* count of the previous slice, and of all ended slices */
	double squares, products,
		change; /* sums of its changes squared and times those of the total; the last change */
};

/*
 * Ends the slice of that number, from 0 to NOISE_SLICES - 1. The series of a total is its own `total`, and its slice is
 * ended before those of its parts.
 */
void noise_end_slice(struct noise_series *series, const struct noise_series *total, unsigned slice);

/* Returns the design effect of bursts, at least 1, after NOISE_SLICES slices have ended. */
double noise_find_bursts(const struct noise_series *series, const struct noise_series *total);

#endif
