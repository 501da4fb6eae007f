// SPDX-License-Identifier: Apache-2.0
/* The largest stacks of each service. */
#ifndef PROFILE_LARGEST_H
#define PROFILE_LARGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * Makes a copy in which each service has its `most` stacks with the largest values, in all its processes together, and
 * a row PROFILE_OTHER_STACKS for the rest, of each state, program and container: sums stay what they are. Returns NULL
 * without memory. The copy has no sources and no events of the rest.
 */
struct profile *profile_keep_largest(const struct profile *p, uint32_t most);

#endif
