// SPDX-License-Identifier: Apache-2.0
/* Waits in the profile: a wait's stack with its leaf, which names the cause, and its time. */
#ifndef SESSION_WAIT_PROFILE_H
#define SESSION_WAIT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "pybpf_wait.h"

struct session;
struct session_waits;

/* Takes the record of a wait that is seen for the first time. Returns 0, -EBADMSG or -ENOMEM. */
int session_wait_add_name(struct session_waits *w, const struct pybpf_wait_event *event, size_t size);
/* Finds what the kernel has sent of a wait; else *wait is left as it is. */
void session_find_wait(const struct session *s, uint64_t wait_id, struct pybpf_wait *wait);
/* Returns the ID of a wait's stack, which may have been read from user space. */
uint64_t session_wait_stack_id(const struct session *s, const struct pybpf_wait_key *key);
/* Returns the profile's stack of a wait without its leaf, or PROFILE_NONE without memory. */
uint32_t session_wait_stack(struct session *s, const struct pybpf_wait_key *key);
/* Returns whether the wait is of a thread without Python functions, whose time has a pseudo stack. */
bool session_wait_is_pseudo(const struct pybpf_wait_key *key);

/* Both return the stack below which a frame was added: a note, or the cause of a wait; PROFILE_NONE without memory. */
uint32_t session_push_note(struct profile *profile, uint32_t stack, const char *text);
uint32_t session_push_wait(struct session *s, uint32_t stack, uint64_t wait_id, uint64_t holder_stack_id);

/*
 * Adds time in a state to the profile. stack: with its leaf; PROFILE_ROOT: to the account only; PROFILE_NONE: there was
 * no memory for it. *sample, unless NULL: the profile's sample that has it, or PROFILE_NONE. Returns 0 or -ENOMEM.
 */
int session_add_thread_time(struct session *s, const struct pybpf_thread_key *thread, uint32_t stack,
			    enum pybpf_state state, struct pybpf_wait_time time, uint32_t *sample);

#endif
