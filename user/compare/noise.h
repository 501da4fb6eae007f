// SPDX-License-Identifier: Apache-2.0
/*
 * Estimates how far two counts of samples differ by chance alone. Works on numbers only, not on profiles.
 *
 * A count is modelled as a draw from a binomial distribution, as a part of a known total, or from a Poisson
 * distribution, as events in a known time. But the samples of a run are not independent draws: code that runs in bursts
 * is hit by several samples in a row or by none. If the times of samples are known, the design effect is estimated: the
 * ratio of the variance to that of independent draws (Kish, Survey Sampling, 1965). Counts and totals are divided by
 * it, as is usual for draws in clusters (Korn and Graubard, Survey Methodology 24, 1998, p. 193). It is never set below
 * 1, although samples by a regular timer can vary less than independent draws.
 *
 * - Interval: the score intervals of both sides, their distances squared and added. For parts of a total this is method
 *   10 of Newcombe (Statistics in Medicine 17, 1998, p. 873), which keeps its level down to small counts, and at zero;
 *   for rates it is the same with the score limits of a Poisson count (Zou and Donner, Statistics in Medicine 27, 2008,
 *   p. 1693).
 * - Many comparisons: Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995, p. 289), without
 *   those that are too small to show a change even if all were on one side (Tarone, Biometrics 46, 1990, p. 515).
 *   Intervals are then widened by the share of comparisons that was chosen, so that they agree with the choice
 *   (Benjamini and Yekutieli, Journal of the American Statistical Association 100, 2005, p. 71).
 * - Design effect: from successive differences between slices of time (von Neumann and others, Annals of Mathematical
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

/* One side of a comparison. */
struct noise_side {
	double count;
	double total;            /* the count is a part of it, above 0; INFINITY: it is a number of events in a time */
	double units_per_sample; /* in the unit of what is compared: 1 / total, or 1 / time */
};

/* An interval of after - before, in the unit of what is compared. */
struct noise_interval {
	double low, high;
};

/* Returns the distance from the mean of a normal distribution, in standard deviations, for a probability of 0 to 1. */
double noise_deviate(double probability);

/* Returns the interval at that deviate; design_effect as above, 1 for independent draws. */
struct noise_interval noise_find_interval(const struct noise_side *before, const struct noise_side *after,
					  double design_effect, double deviate);

/*
 * Returns the probability, 0 to 1, that chance alone makes a difference that exceeds the tolerance as far as this one:
 * that of the deviate at which the interval of one side minus the other, raised by the tolerance (a part of itself),
 * begins at zero. Returns 1, without further search, if the difference does not reach the deviate `least`.
 */
double noise_probability(const struct noise_side *before, const struct noise_side *after, double design_effect,
			 double tolerance, double least);

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

/*
 * Returns the design effect, at least 1, after NOISE_SLICES slices have ended. total: NULL for a number of events in a
 * time.
 */
double noise_design_effect(const struct noise_series *series, const struct noise_series *total);

#endif
