// SPDX-License-Identifier: Apache-2.0
/*
 * Whose counts and times go into the profile: those of ended processes while the run goes on, or those of all when it
 * or an epoch ends.
 */
#ifndef SESSION_DUE_H
#define SESSION_DUE_H

#include <stdbool.h>
#include <stdint.h>

struct session;

struct session_due {
	bool all;      /* the run has ended */
	bool epoch;    /* an epoch ends: what was measured in it goes into the profile */
	double before; /* else: processes that ended before this time, CLOCK_MONOTONIC seconds */
};

bool session_is_due(const struct session *s, const struct session_due *due, uint64_t proc_id);

/* Sets *end_ns to when the run or the epoch has ended, in the kernel's clock; 0: neither. Returns 0 or negative errno.
 */
int session_find_end(const struct session *s, const struct session_due *due, uint64_t *end_ns);

#endif
