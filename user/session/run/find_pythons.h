// SPDX-License-Identifier: Apache-2.0
/* The Pythons of a process that is to be sampled, which may have started just now. */
#ifndef SESSION_FIND_PYTHONS_H
#define SESSION_FIND_PYTHONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "discovery/discovery.h"

/*
 * Finds them: waits while the process is young and none of them has an interpreter. Puts up to `room` of those that
 * have into out, and says in *count how many. Returns 0, or negative errno after reporting what was found. children:
 * the processes that it starts are wanted as well, so it need not be a Python itself; *count is 0 if it is not.
 */
int session_find_pythons(pid_t pid, bool children, struct discovery_python *out, size_t room, size_t *count);

#endif
