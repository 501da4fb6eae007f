// SPDX-License-Identifier: Apache-2.0
/* Puts those who ended waits behind the waits' leaves. All their frames have the state of the wait. */
#include "session/waits/wakers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "session/internal.h"
#include "session/waits/wait_frames.h"
#include "session/waits/wait_name.h"

struct named_waker {
	uint64_t id;
	struct pybpf_waker waker;
};

void session_wakers_init(struct session_wakers *w)
{
	intern_init(&w->named, sizeof(struct named_waker), sizeof(uint64_t));
}

void session_wakers_free(struct session_wakers *w)
{
	intern_free(&w->named);
	session_wakers_init(w);
}

int session_wakers_add(struct session_wakers *w, const struct pybpf_waker_event *event, size_t size)
{
	struct named_waker named;
	bool fresh;

	if (size < sizeof(*event))
		return -EBADMSG;
	named = (struct named_waker){.id = event->waker_id, .waker = event->waker};
	return intern_add(&w->named, &named, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

static void name_waker(const struct session *s, const struct pybpf_waker *waker, char *out, size_t size)
{
	if (s->options.no_wait_detail)
		snprintf(out, size, "[woken by a thread]");
	else if (waker->tid)
		snprintf(out, size, "[woken by: %.*s (%" PRIu32 ")]", (int)sizeof(waker->comm), waker->comm,
			 waker->tid);
	else
		snprintf(out, size, "[woken by: %.*s]", (int)sizeof(waker->comm), waker->comm);
}

uint32_t session_wakers_push(struct session *s, uint32_t stack, const struct pybpf_wait_key *key)
{
	static const char *const words[PYBPF_WAKERS] = {
		[PYBPF_WAKER_TIMER] = "[woken by a timer]",
		[PYBPF_WAKER_INTERRUPT] = "[woken by an interrupt]",
		[PYBPF_WAKER_UNNAMED] = "[woken by a thread]",
	};
	const enum pybpf_state in = (enum pybpf_state)PYBPF_WAIT_STATE_OF(key->wait_id);
	const char *state = session_state_name(in);
	uint32_t i = intern_find(&s->waits.wakers.named, &key->waker_id), from;
	struct named_waker named;
	char text[64];

	if (!s->options.wakers || pybpf_state_is_ready(in) || stack == PROFILE_ROOT || stack == PROFILE_NONE)
		return stack;
	if (key->waker_id < PYBPF_WAKERS)
		return session_add_wait_frame(s->profile, stack, state, words[key->waker_id] ?: "[waker not known]");
	if (i == INTERN_NONE)
		return session_add_wait_frame(s->profile, stack, state, words[PYBPF_WAKER_UNNAMED]);
	named = *(const struct named_waker *)intern_item(&s->waits.wakers.named, i);
	name_waker(s, &named.waker, text, sizeof(text));
	stack = session_add_waker_frame(s->profile, stack, state, text,
					s->options.no_wait_detail ? 0 : (int32_t)named.waker.tid);
	from = named.waker.stack_id ? stacks_find(s->stacks, named.waker.stack_id) : PROFILE_NONE;
	return from == PROFILE_NONE ? stack
				    : session_add_wait_frames_from_root(s->profile, stack, state, "waker", from);
}
