// SPDX-License-Identifier: Apache-2.0
/*
 * Which container processes are in: those of a control group are in the same one, so one question serves them all.
 * Asking once per process would be most of a short process's cost.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/intern.h"
#include "discovery/ask.h"
#include "processes/internal.h"

/* Most groups that are known. */
#define GROUPS_MAX 256
/* Seconds for which an answer is reused, later, and within CONTAINER_YOUNG_S after the group was met. */
#define FRESH_S       1.0
#define FRESH_YOUNG_S 0.1

struct group {
	uint64_t id;
	double first_at, asked_at; /* CLOCK_MONOTONIC seconds */
	int err;                   /* as of discovery_ask_container_of() */
	struct container container;
};

struct processes_groups {
	struct intern known; /* struct group, by id */
	uint32_t oldest;
};

struct processes_groups *processes_groups_new(void)
{
	struct processes_groups *groups = calloc(1, sizeof(*groups));

	if (groups)
		intern_init(&groups->known, sizeof(struct group), sizeof(uint64_t));
	return groups;
}

void processes_groups_free(struct processes_groups *groups)
{
	if (!groups)
		return;
	intern_free(&groups->known);
	free(groups);
}

static struct group *find(const struct processes_groups *groups, uint64_t id)
{
	uint32_t at = intern_find(&groups->known, &id);

	return at == INTERN_NONE ? NULL : intern_item(&groups->known, at);
}

static bool is_fresh(const struct group *group, double now)
{
	return now - group->asked_at < (now - group->first_at < CONTAINER_YOUNG_S ? FRESH_YOUNG_S : FRESH_S);
}

/* Without memory for it, it is asked once more. */
static void note(struct processes_groups *groups, const struct group *answer)
{
	struct group *known = find(groups, answer->id);
	bool fresh;

	if (known) {
		*known = *answer;
		return;
	}
	if (groups->known.count >= GROUPS_MAX)
		intern_remove_oldest(&groups->known, &groups->oldest);
	intern_add(&groups->known, answer, &fresh);
}

int processes_find_container(struct processes_groups *groups, pid_t pid, struct container *out, bool *is_final)
{
	const double now = clock_s(CLOCK_MONOTONIC);
	struct group answer = {.first_at = now, .asked_at = now};
	const struct group *known;

	*is_final = false;
	if (discovery_group_of(pid, &answer.id))
		return discovery_ask_container_of(pid, out);
	known = find(groups, answer.id);
	*is_final = known && now - known->first_at >= CONTAINER_YOUNG_S;
	if (known && is_fresh(known, now)) {
		*out = known->container;
		return known->err;
	}
	if (known)
		answer.first_at = known->first_at;
	answer.err = discovery_ask_container_of(pid, &answer.container);
	*out = answer.container;
	/* A process that has ended meanwhile, or a helper that does not answer, says nothing of the others. */
	if (answer.err == 0 || answer.err == -ENOENT)
		note(groups, &answer);
	else
		*is_final = false;
	return answer.err;
}
