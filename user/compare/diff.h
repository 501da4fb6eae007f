// SPDX-License-Identifier: Apache-2.0
/*
 * Two profiles, before and after, and which of their differences are beyond the noise (profile_noise.h).
 *
 * Stacks are merged by function (name and file) or by line. Threads of a process are put together, and so are
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

/* What is compared, so that runs of different length or rate can be. */
enum diff_basis {
	DIFF_SHARE, /* of all samples of the profile, 0 to 1 */
	DIFF_RATE,  /* CPU time in a second of the run, in seconds: what load takes that is the same per second
		     */
	DIFF_TIME,  /* CPU time, in seconds: of runs that do the same work to its end */
};

enum diff_verdict {
	DIFF_NOISE, /* chance may have done it, or there is nothing to judge by */
	DIFF_GREW,
	DIFF_SHRANK,
	DIFF_NEW,  /* grew from nothing */
	DIFF_GONE, /* shrank to nothing */
};

struct diff_options {
	bool by_line;
	enum diff_basis basis;
	/*
	 * By which part of itself something may differ from run to run although nothing was changed, 0 for none. How
	 * far two runs differ for reasons of their own (where memory lies, what else the machine does) cannot be seen
	 * in one run of each; a change must be more than that, and more than chance.
	 */
	double tolerance;
	double confidence;             /* of intervals, and that what is called a change is none by chance; 0.95 */
	const char *names[DIFF_SIDES]; /* of the profiles, for sentences */
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
	float low, high;     /* interval of after less before, in the unit of what is compared; wider for many rows */
	float design_effect; /* see profile_noise.h */
	uint32_t verdict;    /* enum diff_verdict */
};

/* Of a function, or of a stack. */
struct diff_entry {
	struct diff_change self;  /* it was on top */
	struct diff_change total; /* it was anywhere */
};

struct diff {
	struct diff_options options;
	struct diff_whole whole[DIFF_SIDES];
	/*
	 * Frames, stacks and processes of both; values of samples are those after, 0 where there are none. Facts are
	 * those that are the same in both; no events, account or sources.
	 */
	struct profile *merged;
	uint64_t *before;             /* of each sample of merged, its value before */
	struct diff_entry *functions; /* of each frame of merged: by function or by line */
	struct diff_entry *stacks;    /* of each stack of merged, whatever the process */
	/* What was judged: both profiles have samples, and values are counts, or it is known when they were taken. */
	bool judged;
	size_t tested; /* functions' self and total that have samples enough to be judged at all */
};

/*
 * Compares them. Returns 0 and *diff, or negative errno with one sentence in *error: -EINVAL when they count different
 * things or one does not tell what the basis takes, -ENOMEM.
 */
int diff_make(const struct profile *before, const struct profile *after, const struct diff_options *options,
	      struct diff **diff, struct error *error);
void diff_free(struct diff *diff);

/* After less before, in the unit of what is compared. */
double diff_difference(const struct diff *diff, const struct diff_change *change);

#endif
