// SPDX-License-Identifier: Apache-2.0
/* Signals that are blocked while pybpf waits for a helper. */
#include <signal.h>
#include <stddef.h>

#include "helper/helper.h"

bool helper_is_interrupted(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (sigismember(&pending, ends[i]))
			return true;
	}
	return false;
}
