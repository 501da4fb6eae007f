// SPDX-License-Identifier: Apache-2.0
/* The signals that a run handles. They are blocked, and taken where the run can end in order. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <signal.h>

/*
 * Fills *set with those by which a user, a terminal or a service manager ends a run: SIGHUP is not one of them where
 * pybpf was started with it ignored, as by nohup(1).
 */
void signals_of_end(sigset_t *set);
/* Fills *set with all: those, and others that a run takes or passes on to its command. */
void signals_of_run(sigset_t *set);

#endif
