// SPDX-License-Identifier: Apache-2.0
/* The time of threads in a rolling session, which has the profile of an epoch after the other. */
#ifndef SESSION_ROLLING_H
#define SESSION_ROLLING_H

#include <stdint.h>

struct session;
struct session_due;

/* Reads the threads when an epoch is about to end. Returns 0 or negative errno. */
int session_waits_read_threads(struct session *s);
/*
 * Puts the time of threads since the last epoch into the profile: of those that are due (due.h). end_ns: as
 * session_find_end() tells it. Returns 0 or negative errno.
 */
int session_waits_settle_part(struct session *s, const struct session_due *due, uint64_t end_ns);
/* The process has ended, and all of its time is in a profile. */
void session_waits_forget_process(struct session *s, uint64_t proc_id);

#endif
