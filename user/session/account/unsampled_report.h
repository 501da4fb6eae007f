// SPDX-License-Identifier: Apache-2.0
/* What chosen Python processes without a sample in Python code did: asleep, stopped, frozen, at work elsewhere. */
#ifndef SESSION_UNSAMPLED_REPORT_H
#define SESSION_UNSAMPLED_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "session/session.h"

/* After session_collect: prints what is known of the chosen Python processes without a sample with Python frames. */
void session_print_unsampled(struct session *s, const struct session_account *account, FILE *out);

/* After the end of a run's command: names the processes of Python that it has left behind, if there are any. */
void session_print_left_behind(struct session *s, FILE *out);

/*
 * Returns whether this many samples are too few, by more than chance, for a thread time in which a timer of equal
 * periods would have met `expected`: below the 99.9 % interval of as many independent samples, and by a twentieth at
 * least.
 */
bool session_samples_are_few(uint64_t samples, double expected);

/*
 * After session_collect: names the processes that run under valgrind, whose threads no sample can tell: prints nothing
 * if there are none.
 */
void session_print_simulated(struct session *s, const struct session_account *account, FILE *out);

#endif
