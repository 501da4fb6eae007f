// SPDX-License-Identifier: Apache-2.0
/* Which processes are wanted. */
#ifndef DISCOVERY_FILTER_H
#define DISCOVERY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "container/cgroup.h"
#include "container/container.h"
#include "base/scan.h"

struct discovery_numbers {
	uint32_t *items;
	size_t count, room;
};

struct discovery_texts {
	const char **items; /* not owned: they are the command line's */
	size_t count, room;
};

struct discovery_filter {
	/* What is selected: every process, or those that one of these names. */
	bool all;
	struct discovery_numbers pids;
	bool children; /* what the pids have started, too */
	struct discovery_texts containers, cgroups;
	/* What of that is wanted: any of each list that is not empty, */
	struct discovery_texts comms; /* globs */
	struct discovery_numbers users;
	/* and nothing of these. */
	struct discovery_numbers not_pids, not_users;
	struct discovery_texts not_comms, not_containers;
	/* The groups of containers and cgroups, in this order: discovery_filter_resolve. */
	struct cgroup *groups;
	size_t group_count;
};

/* Returns 0 or -ENOMEM. */
int discovery_numbers_add(struct discovery_numbers *numbers, uint32_t number);
bool discovery_numbers_have(const struct discovery_numbers *numbers, uint32_t number);
int discovery_texts_add(struct discovery_texts *texts, const char *text);

/* Finds the groups of the containers and cgroups. Returns 0, or negative errno with one sentence in *error. */
int discovery_filter_resolve(struct discovery_filter *filter, struct error *error);

/*
 * Is the process wanted? container is the one that it is in, or NULL; it is looked at only where containers are
 * excluded.
 */
bool discovery_filter_matches(const struct discovery_filter *filter, const struct scan_process *process,
			      const struct container *container);

/* What can only be told by a process's name, its PID or its container's name: is there such a filter? */
bool discovery_filter_has_names(const struct discovery_filter *filter);
/* Does a process pass those? container: the one that it is in, or NULL. */
bool discovery_filter_passes_names(const struct discovery_filter *filter, pid_t pid, const char *comm,
				   const struct container *container);

/* Is one of the groups of containers and cgroups still there? */
bool discovery_filter_group_lives(const struct discovery_filter *filter);

void discovery_filter_free(struct discovery_filter *filter);

#endif
