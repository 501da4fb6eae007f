// SPDX-License-Identifier: Apache-2.0
/*
 * The comparison of two sides, before and after, each of one or more runs, and which of their differences are beyond
 * the noise (noise.h) and beyond what runs differ by (spread.h).
 *
 * Stacks are merged by function (name and file) or by line. Threads of a process are merged, and so are
 * processes of the same name: their numbers differ from run to run.
 *
 * Functions are judged by their own samples, against those of all functions that did not change (spread.h): judge.c
 * takes the surest change, leaves it out of what the others are measured against and looks again, so that a function is
 * not named because the share of another grew. What is likely and not sure is left out, too. CPU time per function is
 * shown and not judged: a factor that is common to all functions makes it differ from run to run. The CPU time of the
 * whole is judged by the spread of the runs' totals.
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

/* The quantity that is shown. */
enum diff_basis {
	DIFF_SHARE, /* of all samples of the side, 0 to 1 */
	DIFF_RATE,  /* CPU time in seconds per second of the run: for runs with the same load */
	DIFF_TIME,  /* CPU time of a whole run, in seconds: for runs that do the same work to its end */
};

enum diff_verdict {
	DIFF_UNJUDGED, /* too few samples, or nothing can be judged */
	DIFF_NOISE,    /* sampling may explain the difference */
	DIFF_SPREAD,   /* sampling does not explain it, but runs of one program differ by as much */
	DIFF_LIKELY,   /* it probably grew or shrank, and is not sure enough to be named */
	DIFF_GREW,
	DIFF_SHRANK,
	DIFF_NEW,  /* grew from nothing */
	DIFF_GONE, /* shrank to nothing */
};

/* Why no function is judged. */
enum diff_state {
	DIFF_JUDGED,
	DIFF_EMPTY,         /* a side has no samples */
	DIFF_NO_COUNTS,     /* values are no counts, and it is not known when they were taken */
	DIFF_FEW_FUNCTIONS, /* no function has enough samples, or one has all */
};

/* Percent of all samples of a side that a function must have to be judged, and samples of both sides. */
#define DIFF_LEAST_PERCENT 1
#define DIFF_LEAST_SAMPLES 10
/*
 * Percent: how far runs are assumed to differ at least where there is one a side. With 3, a comparison of networkx's
 * test suite with itself named a change in 11 of 91 pairs, with 6 in 8, with 8 in 1 (tests/compare/run-aa).
 */
#define DIFF_ASSUMED_PERCENT 8

struct diff_options {
	bool by_line;
	enum diff_basis basis;
	/*
	 * The least standard deviation of a function's own time between runs of one program, as a part of itself; below
	 * 0: what DIFF_ASSUMED_PERCENT says with one run a side, else none.
	 */
	double tolerance;
	double confidence; /* of intervals, and 1 - the share of changes that may be chance; 0.95 */
};

/* The runs of one side. */
struct diff_runs {
	struct profile *const *profiles;
	const char *const *names; /* for messages */
	size_t count;
};

/* A part of the machine or of the time, 0 to 1, of the runs of a side. */
struct diff_load {
	double mean, least, most;
};

/* One side as a whole. */
struct diff_whole {
	uint64_t total;          /* value of its samples that have frames */
	double duration_s;       /* of all runs; 0: unknown of one */
	double period_s;         /* of CPU time that a value of 1 stands for; 0: unknown */
	double units_per_sample; /* what one of its values stands for in diff_amount(); 0: nothing */
	double time_s;           /* CPU time by run, or with DIFF_RATE by second of a run */
	double rest;             /* value of the functions that are taken for unchanged */
	struct diff_load load;   /* of the CPUs: what other programs and machines took; unset unless loads_known */
	struct diff_load wait;   /* of the time: some thread waited for a CPU; unset unless waits_known */
	bool times;              /* it is known of all runs when samples were taken */
};

struct diff_function {
	uint64_t self[DIFF_SIDES];  /* it was on top */
	uint64_t total[DIFF_SIDES]; /* it was anywhere */
	double bursts;              /* design effect of bursts of its own samples */
	/* Change of its own samples against the functions that did not change; unset where it was not judged: */
	double change;     /* relative, of the amounts on both sides: 0.25 for a quarter more; -1 to INFINITY */
	double low, high;  /* the interval of change, wider for many functions */
	double chance;     /* part of comparisons without a change in which a function differs as surely as this one */
	double noticeable; /* the smallest change that would have been named in 80 of 100 such comparisons */
	uint32_t verdict;  /* enum diff_verdict */
};

/* The CPU time of the whole: of a run, or with DIFF_RATE of a second of a run. */
struct diff_time {
	bool judged;       /* there is more than one run on a side */
	double change;     /* relative */
	double low, high;  /* its interval */
	double spread;     /* standard deviation of the runs of a side, as a part of their mean */
	double noticeable; /* as above */
	bool changed;
};

struct diff {
	struct diff_options options;
	struct diff_runs runs[DIFF_SIDES];
	struct diff_whole whole[DIFF_SIDES];
	/*
	 * Frames, stacks and processes of all profiles. Samples have the values after, 0 if they are only before. Facts
	 * are those that are the same in all; it has no events, account or sources.
	 */
	struct profile *merged;
	uint64_t *before;                /* the value before, by sample of merged */
	struct diff_function *functions; /* by frame of merged: a function or a line */
	enum diff_state state;
	size_t tested, named; /* number of functions */
	size_t likely;        /* likewise, of those that probably changed */
	double pace;          /* unchanged code took this many times as much after; amounts after are divided by it */
	uint32_t only_other;  /* the only function that named ones are compared with, or PROFILE_NONE */
	double spread;        /* standard deviation of a function's own time between runs, as a part of itself */
	bool assumed;         /* spread is what was assumed: less was measured, or nothing */
	double least_noticeable; /* of all functions that are judged and not named */
	double most_noticeable;  /* likewise */
	bool loads_known;        /* all runs say how busy the machine was */
	bool waits_known;        /* likewise, how long threads waited for a CPU */
	bool uneven;           /* the load beside the runs of one side was another one than beside those of the other */
	struct diff_time time; /* with DIFF_RATE and DIFF_TIME */
};

/*
 * Compares two sides. Returns 0 and *diff, which diff_free() frees and which refers to the runs' names, or negative
 * errno with one sentence in *error: -EINVAL if measures differ, a run is given twice on one side, rates differ on one
 * side, or a run lacks a fact that the basis needs; -ENOMEM.
 */
int diff_make(const struct diff_runs runs[DIFF_SIDES], const struct diff_options *options, struct diff **diff,
	      struct error *error);
void diff_free(struct diff *diff);

/* Returns whether the function is named as changed. */
bool diff_is_change(const struct diff_function *function);
/* Returns whether it is named as changed, or likely. */
bool diff_is_reported(const struct diff_function *function);
/* Returns whether there is one run a side, so that runs were not repeated. */
bool diff_is_single(const struct diff *diff);
/*
 * Returns the value of a side in the unit of the basis. Where functions were judged, those after are scaled so that
 * what did not change is as large as before.
 */
double diff_amount(const struct diff *diff, uint64_t value, enum diff_side side);

#endif
