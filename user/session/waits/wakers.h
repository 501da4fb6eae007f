// SPDX-License-Identifier: Apache-2.0
/* Who ended waits: --wakers. */
#ifndef SESSION_WAKERS_H
#define SESSION_WAKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "pybpf_wait.h"

struct session;

struct session_wakers {
	struct intern named; /* by id */
};

void session_wakers_init(struct session_wakers *w);
void session_wakers_free(struct session_wakers *w);

/* Takes the record of a waker that is seen for the first time. Returns 0, -EBADMSG or -ENOMEM. */
int session_wakers_add(struct session_wakers *w, const struct pybpf_waker_event *event, size_t size);

/*
 * Puts the waker, and its Python functions from the root on, behind the leaf of a wait. stack: of the profile, with
 * that leaf, or PROFILE_ROOT or PROFILE_NONE. Returns the new stack, or PROFILE_NONE without memory.
 */
uint32_t session_wakers_push(struct session *s, uint32_t stack, const struct pybpf_wait_key *key);

#endif
