// SPDX-License-Identifier: Apache-2.0
/* Puts parts of threads' time into the profile: with their stacks, their causes, and who ended them. */
#include "session/waits/take_part.h"

#include "kernel/counts.h"
#include "kernel/waits.h"
#include "session/internal.h"
#include "session/native/native.h"
#include "session/waits/wait_profile.h"

bool session_is_python(const struct session *s, uint64_t proc_id)
{
	const struct processes_record *process = processes_find_record(s->processes, proc_id);

	return process && process->state == PROCESSES_PYTHON;
}

/* Adds a wait with --mode=gil: each to the account, few to the profile. stack: without its leaf. */
static int add_gil_wait(struct session *s, const struct pybpf_wait_key *key, uint64_t wait_id, uint32_t stack,
			struct pybpf_wait_time time)
{
	const struct pybpf_thread_key thread = key->thread;
	const enum pybpf_state state = (enum pybpf_state)PYBPF_WAIT_STATE_OF(wait_id);
	uint32_t holder = stacks_find(s->stacks, key->holder_stack_id);
	bool shown = session_gil_shows(wait_id) && (state == PYBPF_STATE_GIL || !s->options.gil_holders);
	struct pybpf_wait wait = {0};
	uint32_t leaf = PROFILE_ROOT;
	int err;

	session_find_wait(s, wait_id, &wait);
	err = session_is_python(s, key->thread.proc_id) && !(wait.flags & PYBPF_WAIT_HAND_OVER)
		      ? session_gil_add(&s->waits.gil, s->profile, wait_id, stack,
					key->holder_stack_id == PYBPF_HOLDER_NONE ? PROFILE_ROOT : holder, &time)
		      : 0;
	if (shown)
		leaf = session_wakers_push(s, session_push_wait(s, stack, wait_id, key->holder_stack_id), key);
	return err ?: session_add_thread_time(s, &thread, leaf, state, time, NULL);
}

/* Counts time whose stack is lost. */
static void note_lost_stack(struct session *s, const struct pybpf_wait_key *key, uint64_t ns)
{
	if (key->stack_id == PYBPF_STACK_ID_REFUSED)
		s->waits.refused_stacks_ns += ns;
	else if (key->stack_id >= PYBPF_STACK_ID_STACKS && stacks_find(s->stacks, key->stack_id) == PROFILE_NONE)
		s->waits.unsent_stacks_ns += ns;
}

static int add_wait(struct session *s, const struct pybpf_wait_key *key, struct pybpf_wait_time time)
{
	const struct pybpf_thread_key thread = key->thread;
	const struct session_initial_stack *earlier = session_initial_stacks_get(&s->waits.initial_stacks, key);
	uint64_t wait_id = key->wait_id;
	uint32_t leaf, sample;
	int err;

	if (key->wait_id == PYBPF_WAIT_ID(PYBPF_STATE_RUNNING))
		return session_running_add(s, &thread, time.ns);
	if ((!time.ns && !time.count) || (s->options.python_only && session_wait_is_pseudo(key)))
		return 0;
	if (session_is_python(s, key->thread.proc_id)) {
		session_initial_stacks_note(&s->waits.initial_stacks, key, time.ns);
		session_native_note_wait(s, session_wait_stack_id(s, key), time.ns);
		note_lost_stack(s, key, time.ns);
	}
	if (earlier && earlier->gil && (enum pybpf_state)PYBPF_WAIT_STATE_OF(wait_id) == PYBPF_STATE_LOCK)
		wait_id = PYBPF_WAIT_ID(PYBPF_STATE_GIL);
	if (s->options.mode == SESSION_GIL) {
		if (earlier && earlier->with_gil)
			wait_id |= PYBPF_WAIT_WITH_GIL;
		return add_gil_wait(s, key, wait_id, session_wait_stack(s, key), time);
	}
	leaf = session_push_wait(s, session_wait_stack(s, key), wait_id, key->holder_stack_id);
	err = session_add_thread_time(s, &thread, session_wakers_push(s, leaf, key),
				      (enum pybpf_state)PYBPF_WAIT_STATE_OF(wait_id), time, &sample);
	if (err || !s->options.times || sample == PROFILE_NONE)
		return err;
	return session_intervals_know(&s->waits.intervals, key, sample, time);
}

static void note_short(struct session *s, const struct pybpf_wait_key *key, const struct pybpf_wait_time *time)
{
	if (!session_is_python(s, key->thread.proc_id))
		return;
	s->waits.short_waits += time->count;
	s->waits.short_ns += time->ns;
}

int session_waits_add_part(struct session *s, const struct session_part *part)
{
	if (part->key.stack_id != PYBPF_STACK_ID_SHORT)
		return add_wait(s, &part->key, part->time);
	note_short(s, &part->key, &part->time);
	return 0;
}

static void forget_stack(struct session *s, uint64_t stack_id)
{
	if (stack_id < PYBPF_STACK_ID_STACKS)
		return;
	kernel_delete_stack(s->kernel, stack_id);
	stacks_remove(s->stacks, stack_id);
}

void session_waits_forget_time(struct session *s, const struct pybpf_wait_key *key)
{
	const struct pybpf_thread_key thread = key->thread;

	kernel_delete_wait_time(s->kernel, key);
	forget_stack(s, key->stack_id);
	forget_stack(s, key->holder_stack_id);
	kernel_delete_thread_name(s->kernel, &thread);
}
