// SPDX-License-Identifier: Apache-2.0
/* The filter that says which processes are wanted. */
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
	/* Selected processes: all of them, or those that one of these lists names. */
	bool all;
	struct discovery_numbers pids;
	bool children; /* also the descendants of pids */
	struct discovery_texts containers, cgroups;
	/* Wants the selected processes that match every non-empty list here, */
	struct discovery_texts comms; /* globs */
	struct discovery_numbers users;
	/* except those that match one of these. */
	struct discovery_numbers not_pids, not_users;
	struct discovery_texts not_comms, not_containers;
	/* Groups of containers and cgroups; set by discovery_filter_resolve(). */
	struct cgroup *groups;
	size_t group_count, groups_room;
};

/* Returns 0 or -ENOMEM. */
int discovery_numbers_add(struct discovery_numbers *numbers, uint32_t number);
bool discovery_numbers_have(const struct discovery_numbers *numbers, uint32_t number);
/* Returns whether the process is one of these, or a descendant of one. */
bool discovery_is_below(const struct discovery_numbers *pids, pid_t pid);
int discovery_texts_add(struct discovery_texts *texts, const char *text);

/* Finds the groups of the containers and cgroups. Returns 0, or negative errno with one sentence in *error. */
int discovery_filter_resolve(struct discovery_filter *filter, struct error *error);

/*
 * Adds the groups of containers that its names and patterns mean by now: started since, or once more. Returns 0 or
 * -ENOMEM.
 */
int discovery_filter_look_again(struct discovery_filter *filter, double patience_s);

/*
 * Returns whether the filter wants the process. container: the process's container, or NULL; used only when the filter
 * excludes containers.
 */
bool discovery_filter_matches(const struct discovery_filter *filter, const struct scan_process *process,
			      const struct container *container);

/* Returns whether the filter selects no process, and has no condition. */
bool discovery_filter_is_empty(const struct discovery_filter *filter);
/* Returns whether the filter has a condition that only a process's name, its PID or its container's name decides. */
bool discovery_filter_has_names(const struct discovery_filter *filter);
/* Returns whether a process meets those conditions. container: the process's container, or NULL. */
bool discovery_filter_passes_names(const struct discovery_filter *filter, pid_t pid, const char *comm,
				   const struct container *container);

/* Returns whether its names may mean several containers: there are two of them, or one is a pattern. */
bool discovery_filter_means_containers(const struct discovery_filter *filter);

/* Returns whether at least one of the groups of containers and cgroups still exists. */
bool discovery_filter_group_lives(const struct discovery_filter *filter);

void discovery_filter_free(struct discovery_filter *filter);

#endif
