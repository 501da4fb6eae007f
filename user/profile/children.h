// SPDX-License-Identifier: Apache-2.0
/* Tells waits for single processes, whose names have PIDs: a program that starts many has one for each. */
#ifndef PROFILE_CHILDREN_H
#define PROFILE_CHILDREN_H

#include "profile/profile.h"

/* Kinds of such waits. */
#define PROFILE_CHILD_KINDS 3

/* Returns the kind of a wait's frame that names one process; PROFILE_CHILD_KINDS: it names none. */
unsigned profile_child_kind(const struct profile *p, uint32_t frame);
/* Returns the name of waits of a kind for any process, where PIDs say nothing: in several runs, for one. */
const char *profile_child_any(unsigned kind);
/* Returns the name of waits of a kind for several processes, which the caller frees. NULL: no memory. */
char *profile_children_name(unsigned kind, uint32_t processes);

#endif
