// SPDX-License-Identifier: Apache-2.0
/* The control groups of a run: containers that start, stop and start again while it samples. */
#ifndef SESSION_GROUPS_H
#define SESSION_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discovery/filter.h"
#include "session/run/run.h"

struct session_groups {
	struct session *sessions[SESSION_RUN_MAX]; /* as of struct session_run */
	struct discovery_filter *filter;           /* its groups are added to */
	bool quiet;
	uint64_t made;       /* cgroups that were made up to the last call */
	double made_s;       /* CLOCK_MONOTONIC seconds of the last one */
	double next_look_s;  /* no look for containers that have started before this time */
	double gone_since_s; /* no group has been there since; 0: one is */
};

/*
 * Has containers sampled that have started since and that the filter's names or patterns mean. Returns whether the run
 * goes on: a group is there, or a container may start again. To be called ten times a second or more often.
 */
bool session_groups_go_on(struct session_groups *groups);

#endif
