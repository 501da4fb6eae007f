// SPDX-License-Identifier: Apache-2.0
/* Frames behind the leaf of a wait, for functions of other threads: "[waker: f (app.py:7)]". */
#ifndef SESSION_WAIT_FRAMES_H
#define SESSION_WAIT_FRAMES_H

#include <stdint.h>

struct profile;

/*
 * Each takes a stack of the profile and the name of the wait's state, which the frames have, too, and returns the new
 * stack, or PROFILE_NONE without memory.
 */
uint32_t session_add_wait_frame(struct profile *profile, uint32_t stack, const char *state, const char *text);
/* The text names the thread that ended the wait; tid: on the host. */
uint32_t session_add_waker_frame(struct profile *profile, uint32_t stack, const char *state, const char *text,
				 int32_t tid);
/* who: what the thread whose stack is `from` is to the wait. */
uint32_t session_add_wait_frames_from_root(struct profile *profile, uint32_t stack, const char *state, const char *who,
					   uint32_t from);
uint32_t session_add_wait_frames_from_leaf(struct profile *profile, uint32_t stack, const char *state, const char *who,
					   uint32_t from);

#endif
