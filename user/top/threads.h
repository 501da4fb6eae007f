// SPDX-License-Identifier: Apache-2.0
/* What threads did in an interval: by the states that the kernel side measures or, without them, the scheduler's
 * counters. */
#ifndef TOP_THREADS_H
#define TOP_THREADS_H

#include <stdint.h>

#include "base/intern.h"
#include "session/session.h"
#include "top/model.h"

struct top_threads {
	struct session *session;
	struct top_model *model;
	double since;      /* begin of the interval, CLOCK_MONOTONIC seconds */
	struct intern met; /* what was counted at the end of the interval before */
};

/* To be called when sampling begins. Returns 0 or negative errno; top_threads_free() in both cases. */
int top_threads_init(struct top_threads *threads, struct session *session, struct top_model *model);
void top_threads_free(struct top_threads *threads);
/* Adds what each thread did since the call before to the model's interval. Returns 0 or negative errno. */
int top_threads_add(struct top_threads *threads);

#endif
