// SPDX-License-Identifier: Apache-2.0
/* Remembers what stands in for a process. */
#include "base/stand_in.h"

static const struct stand_in *there;

void stand_in_set(const struct stand_in *s)
{
	there = s;
}

const struct stand_in *stand_in_for(pid_t pid)
{
	return pid == STAND_IN_PID ? there : NULL;
}
