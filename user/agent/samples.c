// SPDX-License-Identifier: Apache-2.0
/* Takes samples of the epoch that goes on, before it ends, and says in a profile what it is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "agent/internal.h"
#include "profile/edit.h"

/* Most stacks of samples that are taken before their epoch ends; a stack takes some 100 bytes with its frames. */
#define HELD_STACKS_MAX 200000

int agent_keep_samples(const struct profile *profile, void *arg)
{
	const struct profile_edit edit = {.no_account = true};
	struct agent_part *part = arg;
	struct error error;
	int err;

	part->held = part->held ?: profile_new();
	if (!part->held)
		return -ENOMEM;
	err = profile_edit_add(part->held, profile, &edit, &error);
	if (!err)
		agent_add_to_pulled(part, profile);
	return err;
}

int agent_take_samples(struct agent_part *part, bool forget)
{
	part->generation = forget ? 0 : part->generation;
	/* session_end_epoch() has reported its errors. */
	return session_end_epoch(part->session, forget, agent_keep_samples, part) ? -EIO : 0;
}

int agent_hold(struct agent *a)
{
	int err = 0;

	for (size_t i = 0; i < a->nr_parts && !err; i++) {
		struct agent_part *part = &a->parts[i];

		/* Memory is bounded: beyond that many stacks, samples are lost, and counted. */
		if (session_is_half_full(part->session) &&
		    (!part->held || profile_stack_count(part->held) <= HELD_STACKS_MAX))
			err = agent_take_samples(part, true);
	}
	return err;
}

int agent_describe(struct agent_part *part, const struct session_account *account, uint64_t begin_ns,
		   struct profile *profile)
{
	const struct agent *a = part->agent;
	char start[24], weight[32];
	int err = session_describe_epochs(part->session, account, profile);

	snprintf(start, sizeof(start), "%" PRIu64, begin_ns);
	err = err ?: profile_set_fact(profile, PROFILE_FACT_START, start);
	if (a->most == 1 || err)
		return err;
	if (a->least == a->most)
		snprintf(weight, sizeof(weight), "%u", a->most);
	else
		snprintf(weight, sizeof(weight), "%u, %u", a->least, a->most);
	return profile_set_fact(profile, PROFILE_FACT_WEIGHT, weight);
}
