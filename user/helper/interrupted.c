// SPDX-License-Identifier: Apache-2.0
/* Signals that are blocked while pybpf waits for a helper. */
#include <signal.h>
#include <stddef.h>

#include "helper/helper.h"

static bool goes_on_at_hangup;

void helper_go_on_at_hangup(void)
{
	goes_on_at_hangup = true;
}

bool helper_is_interrupted(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (sigismember(&pending, ends[i]) && !(ends[i] == SIGHUP && goes_on_at_hangup))
			return true;
	}
	return false;
}
