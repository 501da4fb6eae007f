// SPDX-License-Identifier: Apache-2.0
/* Signals that are blocked while pybpf waits for a helper. */
#include <signal.h>

#include "base/signals.h"
#include "helper/helper.h"

static bool goes_on_at_hangup;

void helper_go_on_at_hangup(void)
{
	goes_on_at_hangup = true;
}

bool helper_is_interrupted(void)
{
	sigset_t ends, pending;

	signals_of_end(&ends);
	if (goes_on_at_hangup)
		sigdelset(&ends, SIGHUP);
	sigpending(&pending);
	sigandset(&pending, &pending, &ends);
	return !sigisemptyset(&pending);
}
