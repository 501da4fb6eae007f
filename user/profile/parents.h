// SPDX-License-Identifier: Apache-2.0
/* Who started the processes of a profile: for each a chain of processes, which need not have samples. */
#ifndef PROFILE_PARENTS_H
#define PROFILE_PARENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "profile/profile.h"

/* Most processes of a chain. */
#define PROFILE_PARENTS_MAX 32

struct profile_parent {
	uint32_t above; /* who started it, an index that is smaller than its own; PROFILE_NONE: the chain begins here */
	struct profile_process process;
	uint32_t ended; /* not 0: it had ended when the run did; not a part of what tells two apart */
};

struct profile_parents {
	struct intern list;   /* struct profile_parent */
	uint32_t *of_process; /* by the profile's processes: 1 + who started it; 0: not known */
	size_t nr_processes, room;
};

void profile_parents_init(struct profile_parents *parents);
void profile_parents_free(struct profile_parents *parents);

/* Returns the index of one that is equal, which is added if there is none yet; PROFILE_NONE without memory. */
uint32_t profile_parents_add(struct profile_parents *parents, const struct profile_parent *parent);
/* Says who started a process of the profile. Returns 0 or -ENOMEM. */
int profile_parents_set(struct profile_parents *parents, uint32_t process, uint32_t parent);

/* Returns the index of who started the process, or PROFILE_NONE. */
uint32_t profile_parents_of(const struct profile_parents *parents, uint32_t process);
static inline const struct profile_parent *profile_parents_at(const struct profile_parents *parents, uint32_t index)
{
	return (const struct profile_parent *)intern_item(&parents->list, index);
}
/* Writes the chain above a process, the outermost first. Returns its length. */
size_t profile_parents_chain(const struct profile_parents *parents, uint32_t process,
			     uint32_t out[PROFILE_PARENTS_MAX]);

#endif
