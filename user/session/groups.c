// SPDX-License-Identifier: Apache-2.0
/* Follows the containers of a run: adds the cgroups of those that start, and waits for those that stopped. */
#include "session/groups.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "container/container.h"
#include "kernel/kernel.h"
#include "session/internal.h"

/* Interval between looks within CONTAINER_YOUNG_S after a cgroup was made. */
#define LOOK_S 0.2
/* A look goes through all processes: it takes this share of the time at most. */
#define LOOK_SHARE 0.1
/* Stacks wait in their buffer during a look. */
#define PATIENCE_S 0.3
/* Time that a container has to start again: docker and podman take some 1 s. */
#define RESTART_S 10.0

/* Returns 0, or negative errno of the last session that could not sample it. */
static int include(const struct session_groups *g, const struct cgroup *group)
{
	int err = 0;

	for (size_t i = 0; i < SESSION_RUN_MAX && g->sessions[i]; i++)
		err = kernel_include_cgroup(g->sessions[i]->kernel, group->id) ?: err;
	return err;
}

static void look(struct session_groups *g, double now)
{
	size_t before = g->filter->group_count;
	double took;

	if (discovery_filter_look_again(g->filter, PATIENCE_S))
		log_warn("containers that have started are not found: out of memory; trying again");
	for (size_t i = before; i < g->filter->group_count; i++) {
		const struct cgroup *group = &g->filter->groups[i];
		int err = include(g, group);

		if (err)
			log_warn("cgroup %s of a container that has started cannot be sampled: %s", group->path,
				 err == -E2BIG ? "too many have started during the run" : strerror(-err));
		else
			log_info("cgroup %s of a container that has started is sampled, too", group->path);
	}
	took = clock_s(CLOCK_MONOTONIC) - now;
	g->next_look_s = now + (took > LOOK_S * LOOK_SHARE ? took / LOOK_SHARE : LOOK_S);
}

bool session_groups_go_on(struct session_groups *g)
{
	uint64_t made = kernel_count_made_cgroups(g->sessions[0]->kernel);
	double now = clock_s(CLOCK_MONOTONIC);
	bool alive;

	if (made != g->made)
		g->made_s = now;
	g->made = made;
	if (g->filter->containers.count && now >= g->next_look_s &&
	    (g->gone_since_s > 0 || now < g->made_s + CONTAINER_YOUNG_S))
		look(g, now);
	alive = discovery_filter_group_lives(g->filter);
	if (alive) {
		g->gone_since_s = 0;
		return true;
	}
	if (!g->filter->containers.count)
		return false;
	if (g->gone_since_s <= 0) {
		g->gone_since_s = now;
		if (!g->quiet)
			log_warn("container %s stopped; the run ends if none starts under its name within %.0f s",
				 g->filter->containers.items[0], RESTART_S);
	}
	return now < g->gone_since_s + RESTART_S;
}
