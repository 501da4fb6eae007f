// SPDX-License-Identifier: Apache-2.0
/* Puts functions of other threads behind the leaf of a wait. */
#include "session/waits/wait_frames.h"

#include <stdio.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "session/place_name.h"

/* Bytes of a frame's text: a qualname, a path and a line; longer ones are cut. */
#define TEXT_SIZE 1024

uint32_t session_add_waker_frame(struct profile *profile, uint32_t stack, const char *state, const char *text,
				 int32_t tid)
{
	uint32_t frame = profile_add_wait(profile, state, text, tid);

	return frame == PROFILE_NONE || stack == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(profile, stack, frame);
}

uint32_t session_add_wait_frame(struct profile *profile, uint32_t stack, const char *state, const char *text)
{
	return session_add_waker_frame(profile, stack, state, text, 0);
}

static uint32_t push_frame(struct profile *profile, uint32_t stack, const char *state, const char *who, uint32_t of)
{
	char place[TEXT_SIZE - 32], text[TEXT_SIZE];

	session_name_place(profile, of, place, sizeof(place));
	snprintf(text, sizeof(text), "[%s: %s]", who, place);
	return session_add_wait_frame(profile, stack, state, text);
}

uint32_t session_add_wait_frames_from_root(struct profile *profile, uint32_t stack, const char *state, const char *who,
					   uint32_t from)
{
	uint32_t depth = 0, *frames;

	for (uint32_t i = from; i != PROFILE_ROOT; i = profile_stack_at(profile, i)->parent)
		depth++;
	frames = calloc((size_t)depth + 1, sizeof(*frames));
	if (!frames)
		return PROFILE_NONE;
	for (uint32_t i = from, at = depth; i != PROFILE_ROOT; i = profile_stack_at(profile, i)->parent)
		frames[--at] = profile_stack_at(profile, i)->frame;
	for (uint32_t i = 0; i < depth && stack != PROFILE_NONE; i++)
		stack = push_frame(profile, stack, state, who, frames[i]);
	free(frames);
	return stack;
}

uint32_t session_add_wait_frames_from_leaf(struct profile *profile, uint32_t stack, const char *state, const char *who,
					   uint32_t from)
{
	while (from != PROFILE_ROOT && stack != PROFILE_NONE) {
		stack = push_frame(profile, stack, state, who, profile_stack_at(profile, from)->frame);
		from = profile_stack_at(profile, from)->parent;
	}
	return stack;
}
