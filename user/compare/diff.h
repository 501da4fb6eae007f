// SPDX-License-Identifier: Apache-2.0
/*
 * The comparison of two profiles, before and after, and which of their differences are beyond the noise (noise.h).
 *
 * Stacks are merged by function (name and file) or by line. Threads of a process are merged, and so are
 * processes of the same name: their numbers differ from run to run.
 */
#ifndef COMPARE_DIFF_H
#define COMPARE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"

enum diff_side {
	DIFF_BEFORE,
	DIFF_AFTER,
	DIFF_SIDES,
};

/* The quantity that is compared; it makes runs of different length or sampling rate comparable. */
enum diff_basis {
	DIFF_SHARE, /* of all samples of the profile, 0 to 1 */
	DIFF_RATE,  /* CPU time in seconds per second of the run: for runs with the same load
		     */
	DIFF_TIME,  /* CPU time of the whole run, in seconds: for runs that do the same work to its end */
};

enum diff_verdict {
	DIFF_NOISE, /* the difference may be chance, or its noise cannot be estimated */
	DIFF_GREW,
	DIFF_SHRANK,
	DIFF_NEW,  /* grew from nothing */
	DIFF_GONE, /* shrank to nothing */
};

struct diff_options {
	bool by_line;
	enum diff_basis basis;
	/*
	 * The part of its own value by which an entry may differ between runs of an unchanged program, such as 0.02; 0:
	 * none. This variation (addresses of memory, other load on the machine) cannot be measured with one run of
	 * each side; a change must be larger than it, and larger than chance.
	 */
	double tolerance;
	double confidence;             /* of intervals, and 1 - the share of changes that may be chance; 0.95 */
	const char *names[DIFF_SIDES]; /* of the profiles, for messages */
};

/* One profile as a whole. */
struct diff_whole {
	uint64_t total;          /* value of its samples that have frames */
	double duration_s;       /* of the run; 0: unknown */
	double units_per_sample; /* what one of its values stands for, in the unit of what is compared; 0: there is none
				  */
	double period_s;         /* of CPU time that one stands for; 0: unknown */
	bool times;              /* it is known when samples were taken */
};

struct diff_change {
	uint64_t value[DIFF_SIDES];
	float low, high;     /* interval of after - before, in the unit of the basis; wider for many rows */
	float design_effect; /* see noise.h */
	uint32_t verdict;    /* enum diff_verdict */
};

/* The changes of a function, or of a stack. */
struct diff_entry {
	struct diff_change self;  /* it was on top */
	struct diff_change total; /* it was anywhere */
};

struct diff {
	struct diff_options options;
	struct diff_whole whole[DIFF_SIDES];
	/*
	 * Frames, stacks and processes of both profiles. Samples have the values after, 0 if they are only in the
	 * profile before. Facts are those that are the same in both; it has no events, account or sources.
	 */
	struct profile *merged;
	uint64_t *before;             /* the value before, by sample of merged */
	struct diff_entry *functions; /* by frame of merged: a function or a line */
	struct diff_entry *stacks;    /* by stack of merged, all processes added up */
	/* Verdicts were set: both profiles have samples, and their values are counts, or their times are known. */
	bool judged;
	size_t tested; /* number of functions' self and total values that have enough samples to be judged */
};

/*
 * Compares two profiles. Returns 0 and *diff, which diff_free() frees, or negative errno with one sentence in *error:
 * -EINVAL if their measures differ, or one lacks a fact that the basis needs; -ENOMEM.
 */
int diff_make(const struct profile *before, const struct profile *after, const struct diff_options *options,
	      struct diff **diff, struct error *error);
void diff_free(struct diff *diff);

/* Returns after - before, in the unit of the basis. */
double diff_difference(const struct diff *diff, const struct diff_change *change);

#endif
