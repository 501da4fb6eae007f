// SPDX-License-Identifier: Apache-2.0
/* The chains of processes above those of a profile. */
#include "profile/parents.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void profile_parents_init(struct profile_parents *parents)
{
	memset(parents, 0, sizeof(*parents));
	intern_init(&parents->list, sizeof(struct profile_parent), offsetof(struct profile_parent, ended));
}

void profile_parents_free(struct profile_parents *parents)
{
	intern_free(&parents->list);
	free(parents->of_process);
}

uint32_t profile_parents_add(struct profile_parents *parents, const struct profile_parent *parent)
{
	bool fresh;

	return intern_add(&parents->list, parent, &fresh);
}

int profile_parents_set(struct profile_parents *parents, uint32_t process, uint32_t parent)
{
	int err =
		array_reserve(&parents->of_process, &parents->room, (size_t)process + 1, sizeof(*parents->of_process));

	if (err)
		return err;
	while (parents->nr_processes <= process)
		parents->of_process[parents->nr_processes++] = 0;
	parents->of_process[process] = parent + 1;
	return 0;
}

uint32_t profile_parents_of(const struct profile_parents *parents, uint32_t process)
{
	return process < parents->nr_processes ? parents->of_process[process] - 1 : PROFILE_NONE;
}

size_t profile_parents_chain(const struct profile_parents *parents, uint32_t process, uint32_t out[PROFILE_PARENTS_MAX])
{
	size_t count = 0;

	for (uint32_t i = profile_parents_of(parents, process); i != PROFILE_NONE && count < PROFILE_PARENTS_MAX;
	     i = profile_parents_at(parents, i)->above)
		out[count++] = i;
	for (size_t i = 0; i < count / 2; i++) {
		uint32_t other = out[i];

		out[i] = out[count - 1 - i];
		out[count - 1 - i] = other;
	}
	return count;
}
