// SPDX-License-Identifier: Apache-2.0
#include "base/signals.h"

#include <stdbool.h>
#include <stddef.h>

static void add(sigset_t *set, const int *signals, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sigaddset(set, signals[i]);
}

static bool is_ignored(int signo)
{
	struct sigaction action;

	return !sigaction(signo, NULL, &action) && action.sa_handler == SIG_IGN;
}

void signals_of_end(sigset_t *set)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM};

	sigemptyset(set);
	add(set, ends, sizeof(ends) / sizeof(*ends));
	/* Blocked, it would arrive although it is ignored. */
	if (is_ignored(SIGHUP))
		sigdelset(set, SIGHUP);
}

void signals_of_run(sigset_t *set)
{
	static const int others[] = {SIGXFSZ, SIGUSR1, SIGUSR2, SIGCHLD};

	signals_of_end(set);
	add(set, others, sizeof(others) / sizeof(*others));
}
