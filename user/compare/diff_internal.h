// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the parts of the comparison: merge.c merges the profiles, times.c estimates bursts, judge.c names changes,
 * load.c says how busy the machine was, diff.c checks, adds up and calls them.
 */
#ifndef COMPARE_DIFF_INTERNAL_H
#define COMPARE_DIFF_INTERNAL_H

#include "compare/diff.h"

/* One run: maps indices of its profile to those of the merged one. */
struct diff_map {
	const struct profile *p;
	enum diff_side side;
	uint32_t *frames, *stacks, *processes;
	uint32_t *samples; /* PROFILE_NONE for those without frames */
	double *self;      /* by frame of the merged profile: value of the samples in which it is the innermost */
	double total;      /* the sum of self */
};

/* Makes diff->merged and diff->before, and fills all maps but self and total. Returns 0 or -ENOMEM. */
int diff_merge(struct diff *diff, struct diff_map *maps, size_t nr_maps);
void diff_map_free(struct diff_map *map);

/*
 * Sets the functions' design effects of bursts to the mean of the runs, in proportion to their samples; where it is not
 * known when samples were taken, they are independent. Returns 0 or -ENOMEM.
 */
int diff_estimate_bursts(struct diff *diff, const struct diff_map *maps, size_t count);

/* Sets the functions' verdicts and what belongs to them. Returns 0 or -ENOMEM. */
int diff_judge(struct diff *diff, const struct diff_map *maps, size_t count);

/* Sets the load beside both sides. */
void diff_measure_load(struct diff *diff, const struct diff_map *maps, size_t count);

/* Sets diff->time. */
void diff_judge_time(struct diff *diff, const struct diff_map *maps, size_t count);

#endif
