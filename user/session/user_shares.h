// SPDX-License-Identifier: Apache-2.0
/* Visits processes so that no user's many threads take the time of other users. */
#ifndef SESSION_USER_SHARES_H
#define SESSION_USER_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include "processes/processes.h"

struct session;

/* Returns whether the process lives and runs Python: an is_due for the next ones. arg: not used. */
bool session_runs_python(const struct processes_record *process, void *arg);

/*
 * Calls visit with each process for which is_due is true, user by user. until_s: session_used_s() until when all visits
 * are to be done; visit's until_s is until when those of this process's user are: each user has an equal share of what
 * is left. Returns 0 or -ENOMEM, when none was visited.
 */
int session_visit_by_user(struct session *s, double until_s,
			  bool (*is_due)(const struct processes_record *process, void *arg),
			  void (*visit)(struct processes_record *process, double until_s, void *arg), void *arg);

/* Returns the number of users that have such a process, 0 without memory. */
size_t session_count_users(struct session *s, bool (*is_due)(const struct processes_record *process, void *arg),
			   void *arg);

#endif
