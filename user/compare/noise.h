// SPDX-License-Identifier: Apache-2.0
/*
 * How far two counts of samples differ by chance alone. Knows numbers only.
 *
 * A count is taken for a draw from a binomial distribution, as a part of a known total, or from a Poisson distribution,
 * as events in a known time. The samples of a run are no independent draws, though: what works in bursts is met by
 * several in a row or by none. Where it is known when they were taken, the design effect is estimated: how many times
 * the variance is that of independent draws (Kish, Survey Sampling, 1965). Counts and totals are divided by it, as is
 * usual for draws in clusters (Korn and Graubard, Survey Methodology 24, 1998, p. 193). It is never taken for less than
 * 1, although a timer of an even beat can do better than chance.
 *
 * - Interval: the score intervals of both sides, their distances squared and added. For parts of a total that is method
 *   10 of Newcombe (Statistics in Medicine 17, 1998, p. 873), which keeps its level down to small counts, and at zero;
 *   for rates it is the same with the score limits of a Poisson count (Zou and Donner, Statistics in Medicine 27, 2008,
 *   p. 1693).
 * - Many comparisons: Benjamini and Hochberg (Journal of the Royal Statistical Society B 57, 1995, p. 289), without
 *   those that are too small to show anything even if all were on one side (Tarone, Biometrics 46, 1990, p. 515).
 *   Intervals are then widened by the share of comparisons that was chosen, so that they agree with the choice
 *   (Benjamini and Yekutieli, Journal of the American Statistical Association 100, 2005, p. 71).
 * - Design effect: from successive differences between slices of time (von Neumann and others, Annals of Mathematical
 *   Statistics 12, 1941, p. 153; Wolter, Introduction to Variance Estimation, 2007, chapter 8). What changes more
 * slowly than from slice to slice counts as a phase of the program and not as chance.
 */
#ifndef COMPARE_NOISE_H
#define COMPARE_NOISE_H

#include <stddef.h>

/*
 * Slices that a run is cut into. Fewer would take more of a program's phases for bursts, more would not see the longer
 * bursts: those of a 300th of the run are allowed for as stated, those of a 100th only in part. The design effect's own
 * error is then some 30 % (the square root of 3 / 31).
 */
#define NOISE_SLICES 32

/* One side of a comparison. */
struct noise_side {
	double count;
	double total;            /* that it is a part of, above 0; INFINITY: it is a number of events in some time */
	double units_per_sample; /* of one, in the unit of what is compared: 1 / total, or 1 / time */
};

/* Of what is after less what was before, in the unit of what is compared. */
struct noise_interval {
	double low, high;
};

/* How far from the mean of a normal distribution, in standard deviations, lies what has this probability, 0 to 1. */
double noise_deviate(double probability);

/* The interval that reaches as far as the deviate; design_effect as above, 1 for independent draws. */
struct noise_interval noise_find_interval(const struct noise_side *before, const struct noise_side *after,
					  double design_effect, double deviate);

/*
 * How probable a difference so much greater than the tolerance is by chance, 0 to 1: at that deviate, the interval of
 * one side less the other, which is made greater by the tolerance (a part of itself), begins at zero. What does not
 * reach the deviate `least` is not looked at more closely: 1.
 */
double noise_probability(const struct noise_side *before, const struct noise_side *after, double design_effect,
			 double tolerance, double least);

/*
 * Which of several differences are more than chance, so that of those at most `rate`, 0 to 1, are expected to be
 * chance: all whose probability is at most *limit, which is less than 0 for none. Sorts the probabilities, and returns
 * how many that are.
 */
size_t noise_choose(double *probabilities, size_t count, double rate, double *limit);

/* A count, slice by slice. Zeroed at first. */
struct noise_series {
	double current;   /* of this slice, what is added to */
	double last, sum; /* of the slice before, of all that have ended */
	double squares, products,
		change; /* sums of its changes squared and times those of the total; the last change */
};

/*
 * Ends the slice of that number, from 0 up to NOISE_SLICES. A total's own series has itself for total, and its
 * slice ends before those of its parts.
 */
void noise_end_slice(struct noise_series *series, const struct noise_series *total, unsigned slice);

/* After NOISE_SLICES. total: NULL for a number of events in some time. At least 1. */
double noise_design_effect(const struct noise_series *series, const struct noise_series *total);

#endif
