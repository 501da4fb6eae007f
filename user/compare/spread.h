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
 * Functions are measured against the others: a reference by run, in which each function counts in inverse proportion to
 * its design effect. So a large function that differs from run to run weighs no more than a small one that does as
 * much, and one whose share has moved between the sides by more than DOUBT_FROM standard deviations weighs less the
 * more it moved (Huber, Annals of Mathematical Statistics 35, 1964, p. 73), whether it is named as changed or not. A
 * function is no part of its own reference.
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
	bool apart;           /* it is taken for changed: it is no part of the reference, and no sample of sigma */
	double deviate;       /* how sure its change is; 0 before it was judged */
	double weight;        /* by spread_set_reference(): of its counts in the reference */
	double scale;         /* likewise: design effect by which the reference is as precise as its total says */
	double sampling;      /* result: the design effect of the part of the bursts that is chance */
	double effect;        /* result: the design effect of all by which runs differ */
	double freedom;       /* result: degrees of freedom of that estimate */
};

struct spread {
	size_t runs[SPREAD_SIDES];
	const double *small; /* by run: samples of all functions that are no row */
	double *reference;   /* by run: what the rows are measured against */
	double assumed;      /* the least sigma */
	struct spread_row *rows;
	size_t nr_rows;
	double chance; /* common to all rows: the part of the bursts that is chance, 0 to 1 */
	double sigma;  /* common to all rows; 0.03: runs differ by 3 % */
};

/* Functions with samples on both sides that it takes to see how far runs differ with one run a side. */
#define SPREAD_FEWEST 4

/* Sets the reference, by the rows' effects and deviates, which are 0 before they were estimated. */
void spread_set_reference(struct spread *spread);
/* Returns the row's count and the reference without it: what its count is a part of. */
double spread_total(const struct spread *spread, const struct spread_row *row, size_t run);
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
