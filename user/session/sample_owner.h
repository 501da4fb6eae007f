// SPDX-License-Identifier: Apache-2.0
/* The process and the thread that a sample or a time of the profile belongs to. */
#ifndef SESSION_SAMPLE_OWNER_H
#define SESSION_SAMPLE_OWNER_H

#include <stdint.h>

#include "pybpf.h"

struct processes_record;
struct session;

/*
 * Finds or adds a process and, if threads are distinguished, one of its threads in the profile; of: tid 0 for none.
 * Returns 0 or -ENOMEM.
 */
int session_find_owners(struct session *s, const struct pybpf_thread_key *of, struct processes_record *process,
			uint32_t *owner, uint32_t *thread);

#endif
