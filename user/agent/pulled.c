// SPDX-License-Identifier: Apache-2.0
/* The profiles that clients wait for: samples are added to them as they are taken. */
#include <string.h>

#include "agent/internal.h"
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

int agent_add_to_pulled(const struct agent_part *part, const struct profile *profile)
{
	const struct agent *a = part->agent;
	const struct profile_edit edit = {.no_account = true};
	struct error error;
	int err = 0;

	for (size_t i = 0; i < a->nr_pulled && !err; i++) {
		if (a->pulled[i].part == part && a->pulled[i].profile)
			err = profile_edit_add(a->pulled[i].profile, profile, &edit, &error);
	}
	return err;
}
