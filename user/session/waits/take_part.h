// SPDX-License-Identifier: Apache-2.0
/* Takes parts of threads' time over into the profile, and out of the kernel's maps. */
#ifndef SESSION_TAKE_PART_H
#define SESSION_TAKE_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf_wait.h"
#include "session/waits/time_parts.h"

struct session;

/* Returns whether it is known that the process runs Python: the time of others is not in the profile. */
bool session_is_python(const struct session *s, uint64_t proc_id);

/* Puts a part of a thread's time into the profile, or what is left out of it into the account. Returns 0 or -ENOMEM. */
int session_waits_add_part(struct session *s, const struct session_part *part);
/* Removes a time of an ended process from the kernel's map, and gives back its stacks, which are met no more. */
void session_waits_forget_time(struct session *s, const struct pybpf_wait_key *key);

#endif
