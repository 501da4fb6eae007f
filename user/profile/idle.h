// SPDX-License-Identifier: Apache-2.0
/* Tells waiting for work from work: finds waits of pools, servers and event loops that have nothing to do. */
#ifndef PROFILE_IDLE_H
#define PROFILE_IDLE_H

#include <stdbool.h>

#include "profile/profile.h"

/* The leaf of all waits for work where they are folded: it has the state in which each of them is. */
#define PROFILE_IDLE_NAME "[waiting for work]"

/*
 * Finds the stacks that wait in the idle place of a pool, server or event loop that is known, by the names and files of
 * functions. Only functions of libraries may be between the place and the wait: what the program's own function waits
 * for is never idle. Returns for each stack whether it is; the caller frees the array. NULL: no memory.
 */
bool *profile_idle_stacks(const struct profile *p);

/* Returns whether a stack is that of waits for work, which profile_edit_add() has folded. */
bool profile_is_folded_idle(const struct profile *p, uint32_t stack);

#endif
