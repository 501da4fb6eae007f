// SPDX-License-Identifier: Apache-2.0
/* What the waits of a rolling session still need when stacks, frames and names begin anew. */
#ifndef SESSION_RETAINED_H
#define SESSION_RETAINED_H

struct intern;
struct session;

/*
 * Adds the ids of the stacks of waits that go on, or have ended since the last epoch, to a table of uint64_t. Forgets
 * the names of waits and the first stacks of threads that none of them has. Returns 0 or negative errno.
 */
int session_waits_keep_stacks(struct session *s, struct intern *ids);

#endif
