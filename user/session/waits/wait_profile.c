// SPDX-License-Identifier: Apache-2.0
/* Puts waits into the profile: a wait's stack with its leaf, which names the cause, and its time. */
#include "session/waits/wait_profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernel/counts.h"
#include "session/internal.h"
#include "session/sample_owner.h"
#include "session/waits/wait_frames.h"
#include "session/waits/wait_name.h"

#define NS_PER_US 1000

int session_wait_add_name(struct session_waits *w, const struct pybpf_wait_event *event, size_t size)
{
	struct session_named_wait named;
	bool fresh;
	uint32_t i;

	if (size < sizeof(*event))
		return -EBADMSG;
	named = (struct session_named_wait){.wait_id = event->wait_id, .wait = event->wait};
	i = intern_add(&w->names, &named, &fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	((struct session_named_wait *)intern_item(&w->names, i))->forgotten = 0;
	return 0;
}

uint32_t session_push_note(struct profile *profile, uint32_t stack, const char *text)
{
	uint32_t frame;

	if (stack == PROFILE_NONE)
		return PROFILE_NONE;
	frame = profile_add_frame(profile, PROFILE_NOTE, text, "", PROFILE_NO_LINE, PROFILE_NO_LINE);
	return frame == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(profile, stack, frame);
}

/* The words for what is no stack, by enum pybpf_stack_id. */
static const char *const no_stack[PYBPF_STACK_ID_STACKS] = {
	[PYBPF_STACK_ID_UNDECIDED] = "[before its Python was found]",
	[PYBPF_STACK_ID_EARLIER] = "[asleep since before the run]",
	[PYBPF_STACK_ID_NEW] = "[new thread]",
	[PYBPF_STACK_ID_UNREADABLE] = "[stack not readable]",
	[PYBPF_STACK_ID_REFUSED] = "[no memory for the stack]",
};

/* Those of them that are pseudo stacks in the profile, with the counter of their samples. */
static const uint32_t reason_of[PYBPF_STACK_ID_STACKS] = {
	[PYBPF_STACK_ID_NO_THREAD] = PYBPF_COUNT_NO_THREAD_STATE,
	[PYBPF_STACK_ID_NO_FRAMES] = PYBPF_COUNT_NO_FRAMES,
	[PYBPF_STACK_ID_NO_INTERPRETER] = PYBPF_COUNT_NO_INTERPRETER,
};

static uint32_t push_pseudo(struct session *s, const struct pybpf_wait_key *key)
{
	const struct pybpf_thread_key named = key->thread;
	struct pybpf_pseudo_stack pseudo = {.no_frames_reason = reason_of[key->stack_id]};
	struct pybpf_thread_name name;

	if (key->stack_id == PYBPF_STACK_ID_NO_THREAD) {
		kernel_get_thread_name(s->kernel, &named, &name);
		memcpy(pseudo.comm, name.comm, sizeof(pseudo.comm));
	}
	return stacks_add_pseudo(s->stacks, &pseudo);
}

uint64_t session_wait_stack_id(const struct session *s, const struct pybpf_wait_key *key)
{
	const struct session_initial_stack *earlier = session_initial_stacks_get(&s->waits.initial_stacks, key);

	return earlier ? earlier->stack_id : key->stack_id;
}

uint32_t session_wait_stack(struct session *s, const struct pybpf_wait_key *key)
{
	uint64_t id = session_wait_stack_id(s, key);
	uint32_t stack;

	if (id < PYBPF_STACK_ID_STACKS && reason_of[id])
		return push_pseudo(s, key);
	if (id < PYBPF_STACK_ID_STACKS)
		return session_push_note(s->profile, PROFILE_ROOT, no_stack[id] ?: "[unknown]");
	stack = stacks_find(s->stacks, id);
	return stack == PROFILE_NONE ? session_push_note(s->profile, PROFILE_ROOT, "[stack not received]") : stack;
}

/* Writes the leaf of a wait for a GIL whose holder is known. Returns false if its stack never came. */
static bool name_holder(const struct session *s, uint64_t holder_stack_id, char *out, size_t size)
{
	uint32_t stack = stacks_find(s->stacks, holder_stack_id);
	const struct profile_frame *frame;

	if (holder_stack_id == PYBPF_HOLDER_NONE) {
		snprintf(out, size, "[%s: not held]", session_state_name(PYBPF_STATE_GIL));
		return true;
	}
	if (!holder_stack_id || stack == PROFILE_NONE || stack == PROFILE_ROOT)
		return false;
	frame = profile_frame_at(s->profile, profile_stack_at(s->profile, stack)->frame);
	snprintf(out, size, "[%s: held in %s]", session_state_name(PYBPF_STATE_GIL),
		 profile_string(s->profile, frame->name));
	return true;
}

void session_find_wait(const struct session *s, uint64_t wait_id, struct pybpf_wait *wait)
{
	uint64_t name = wait_id & ~PYBPF_WAIT_WITH_GIL;
	uint32_t i = intern_find(&s->waits.names, &name);

	if (i != INTERN_NONE)
		*wait = ((const struct session_named_wait *)intern_item(&s->waits.names, i))->wait;
}

uint32_t session_push_wait(struct session *s, uint32_t stack, uint64_t wait_id, uint64_t holder_stack_id)
{
	struct pybpf_wait wait = {.state = (uint8_t)PYBPF_WAIT_STATE_OF(wait_id)};
	char text[SESSION_WAIT_NAME];
	const char *state = session_state_name((enum pybpf_state)PYBPF_WAIT_STATE_OF(wait_id));
	uint32_t holder = stacks_find(s->stacks, holder_stack_id);
	bool held = holder_stack_id >= PYBPF_HOLDERS && holder != PROFILE_NONE;

	session_find_wait(s, wait_id, &wait);
	if (s->options.gil_holders && !(wait.flags & PYBPF_WAIT_HAND_OVER)) {
		if (!held)
			holder = session_push_note(s->profile, PROFILE_ROOT,
						   holder_stack_id == PYBPF_HOLDER_NONE ? "[no holder]"
											: "[holder not known]");
		session_gil_name_blocked(s->profile, stack, text, sizeof(text));
		return session_push_note(s->profile, holder, text);
	}
	if (!name_holder(s, holder_stack_id, text, sizeof(text)))
		session_name_wait(&wait, text, sizeof(text));
	if (wait_id & PYBPF_WAIT_WITH_GIL)
		session_gil_name_asleep(text, sizeof(text));
	stack = session_add_wait_frame(s->profile, stack, state, text);
	if (s->options.gil_pairs && held)
		stack = session_add_wait_frames_from_leaf(s->profile, stack, state, "holder", holder);
	return stack;
}

int session_add_thread_time(struct session *s, const struct pybpf_thread_key *thread, uint32_t stack,
			    enum pybpf_state state, struct pybpf_wait_time time, uint32_t *sample)
{
	struct processes_record *process = processes_find_record(s->processes, thread->proc_id);
	/* Which thread it is that held the GIL is not known. */
	const struct pybpf_thread_key of = {.proc_id = thread->proc_id,
					    .tid = s->options.gil_holders ? 0 : thread->tid,
					    .tid_start_ms = thread->tid_start_ms};
	uint32_t owner, tid;
	int err;

	if (sample)
		*sample = PROFILE_NONE;
	if (!process || process->state != PROCESSES_PYTHON)
		return 0;
	if (stack == PROFILE_NONE)
		return -ENOMEM;
	s->waits.state_ns[state] += time.ns;
	if (stack == PROFILE_ROOT)
		return 0;
	if (session_find_owners(s, &of, process, &owner, &tid))
		return -ENOMEM;
	err = profile_add_time(s->profile, stack, owner, tid, (time.ns + NS_PER_US / 2) / NS_PER_US, time.count);
	if (!err && sample)
		*sample = profile_find_sample(s->profile, stack, owner, tid);
	return err;
}

bool session_wait_is_pseudo(const struct pybpf_wait_key *key)
{
	return key->stack_id < PYBPF_STACK_ID_STACKS && reason_of[key->stack_id];
}
