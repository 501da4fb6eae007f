// SPDX-License-Identifier: Apache-2.0
/* Takes what a session has sampled in each interval, and gives it to the model. */
#ifndef TOP_FEED_H
#define TOP_FEED_H

#include <stdint.h>

#include "session/session.h"
#include "top/model.h"
#include "top/threads.h"

struct top_feed {
	struct session *session; /* rolling; attached when the first interval begins */
	struct top_model *model;
	struct profile *all;  /* everything since the start, or since it grew too large: for stacks */
	double all_since;     /* CLOCK_MONOTONIC seconds */
	struct profile *held; /* of the interval that goes on: what the kernel has no room for; NULL: nothing */
	double begin;         /* of the run, and of the interval, CLOCK_MONOTONIC seconds */
	double since;
	double before;                  /* begin of the interval that ended last */
	bool own_only;                  /* functions that are not the program's own are left out */
	bool finished;                  /* the last profile is in it, with the run's account */
	struct session_account account; /* at the end of the interval before */
	struct top_threads threads;
	char *source_file; /* the file whose text was read last; NULL: none */
	char *source;      /* its text; NULL: it is not known */
};

/* To be called when sampling begins. Returns 0 or negative errno; top_feed_free() in both cases. */
int top_feed_init(struct top_feed *feed, struct session *session, struct top_model *model, bool own_only);
void top_feed_free(struct top_feed *feed);
/*
 * Takes what was sampled in the interval from the kernel when it has much: an interval can be long, and lasts while the
 * view is frozen. To be called each second or so. Returns 0, or negative errno after reporting what failed.
 */
int top_feed_hold(struct top_feed *feed);
/* Ends the interval. Returns 0, or negative errno after reporting what failed. */
int top_feed_interval(struct top_feed *feed);
/*
 * Adds the last profile, which session_collect() returned. end: when sampling ended, CLOCK_MONOTONIC seconds. Returns
 * 0, or negative errno after reporting what failed.
 */
int top_feed_finish(struct top_feed *feed, const struct profile *profile, const struct session_account *account,
		    double end);

/*
 * Makes a profile of all samples that are kept, as `pybpf` writes it, which the caller frees. Returns NULL without
 * memory.
 */
struct profile *top_feed_profile(const struct top_feed *feed);
/* Returns the source text of a file of the rows, or NULL; valid until the next call. file NULL: none is wanted. */
const char *top_feed_source(struct top_feed *feed, const char *file);

#endif
