// SPDX-License-Identifier: Apache-2.0
/*
 * Estimates how far runs of one program differ beyond sampling: addresses of memory, seeds of hashes, the machine's
 * other load. Works on numbers only, not on profiles.
 *
 * Each function's counts vary between the runs of a side by `phi` times as much as independent draws. With a few runs
 * phi alone is a poor estimate, so that it is shrunk towards what all functions have in common, as limma and edgeR do
 * with genes (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, article 3). Two things are
 * common, in this order: a part of the bursts that were seen within runs, for a program that has the same phases in
 * each run has bursts that are no chance; and, where all of the bursts do not explain how far counts vary, a standard
 * deviation sigma of a function's own time, of which the variance of a count grows with the count.
 *
 * With one run a side nothing varies within a side: the differences between both sides, of which the median is not
 * moved by some functions that changed, say the same, and sigma is at least what is assumed.
 */
#ifndef COMPARE_SPREAD_H
#define COMPARE_SPREAD_H

#include <stdbool.h>
#include <stddef.h>

enum {
	SPREAD_SIDES = 2,
};

/* A function's counts. */
struct spread_row {
	const double *counts; /* by run: all of the side before, then all of the side after */
	double bursts;        /* design effect of bursts, at least 1 */
	bool apart; /* it is named as changed: its total is the others' and its own, and it is no sample of sigma */
	double sampling; /* result: the design effect of the part of the bursts that is chance */
	double effect;   /* result: the design effect of all by which runs differ */
	double freedom;  /* result: degrees of freedom of that estimate */
};

struct spread {
	size_t runs[SPREAD_SIDES];
	const double *totals; /* by run: samples of all functions that are not apart */
	double assumed;       /* the least sigma */
	struct spread_row *rows;
	size_t nr_rows;
	double chance; /* common to all rows: the part of the bursts that is chance, 0 to 1 */
	double sigma;  /* common to all rows; 0.03: runs differ by 3 % */
};

/* Functions with samples on both sides that it takes to see how far runs differ with one run a side. */
#define SPREAD_FEWEST 4

/*
 * Sets chance and sigma. Returns 0; 1 if both stay as they were, for there is one run a side and too few functions; or
 * -ENOMEM.
 */
int spread_find_common(struct spread *spread);
/* Sets the rows' results from what is common, and from how far each row varies. */
void spread_set_effects(struct spread *spread);

/* Returns the sum of a side's values by run. */
double spread_sum(const struct spread *spread, const double *by_run, int side);

#endif
