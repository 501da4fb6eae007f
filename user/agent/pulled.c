// SPDX-License-Identifier: Apache-2.0
/* The profiles that clients wait for: samples are added to them as they are taken. */
#include <string.h>

#include "agent/internal.h"
#include "base/log.h"
#include "profile/edit.h"
#include "profile/profile.h"

void agent_remove_pulled(struct agent *a, size_t i)
{
	profile_free(a->pulled[i].profile);
	memmove(&a->pulled[i], &a->pulled[i + 1], (--a->nr_pulled - i) * sizeof(*a->pulled));
}

void agent_drop_pulled(struct agent *a)
{
	while (a->nr_pulled)
		agent_remove_pulled(a, a->nr_pulled - 1);
}

/* Without these samples it would be wrong; the epoch, which has them, goes on. */
static void give_up(struct agent_pulled *pulled, const struct error *error)
{
	log_warn("a profile that was asked for by HTTP is given up: %s", error->text);
	profile_free(pulled->profile);
	pulled->profile = NULL;
	pulled->is_lost = true;
}

void agent_add_to_pulled(const struct agent_part *part, const struct profile *profile)
{
	struct agent *a = part->agent;
	const struct profile_edit edit = {.no_account = true};
	struct error error;

	for (size_t i = 0; i < a->nr_pulled; i++) {
		struct agent_pulled *pulled = &a->pulled[i];

		if (pulled->part == part && pulled->profile &&
		    profile_edit_add(pulled->profile, profile, &edit, &error))
			give_up(pulled, &error);
	}
}
