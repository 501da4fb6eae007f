// SPDX-License-Identifier: Apache-2.0
/* Puts into the profile what stacks hold of the memory that became resident, and tells what they do not. */
#include "session/resident.h"

#include "base/beyond.h"
#include "kernel/events.h"
#include "session/internal.h"
#include "session/measure.h"

static void init(struct session *s)
{
	session_held_init(&s->held);
}

static void release(struct session *s)
{
	session_held_free(&s->held);
}

static int take(struct session *s, const struct pybpf_event *event)
{
	return session_held_take(&s->held, (const void *)event, event->size, !s->memory_full);
}

/* Adds what a stack holds: of a process that has ended, when it held most. */
static int add_count(struct session *s, const struct session_counted *counted)
{
	const struct pybpf_thread_key of = SESSION_THREAD_OF(counted->key);
	uint64_t bytes = session_held_get(&s->held, counted->key, counted->process->ended);
	uint32_t owner, thread;

	s->touched += counted->count->value;
	if (!bytes)
		return 0;
	s->held_at_most += counted->process->ended ? bytes : 0;
	return session_find_owners(s, &of, counted->process, &owner, &thread)
		       ?: profile_add_sample(s->profile, counted->stack, owner, thread, bytes);
}

static void forget_process(struct session *s, uint64_t proc_id)
{
	session_held_forget(&s->held, proc_id);
}

static void tell(const struct session *s, struct session_account *account)
{
	uint64_t given, taken;

	account->has_held = true;
	session_held_tell(&s->held, &given, &taken);
	account->held = given - taken;
	account->unknown_touched = beyond(account->touched, given);
	account->unknown_given_back = beyond(account->given_back, taken);
	account->unsent_memory = kernel_get_memory_unsent(s->kernel);
	account->refused_memory = s->held.refused;
	account->held_at_most = s->held_at_most;
}

static bool is_wanted(const struct session_options *options)
{
	return options->held;
}

const struct session_measure session_resident_measure = {
	.name = "resident memory",
	.is_wanted = is_wanted,
	.init = init,
	.free = release,
	.records = SESSION_RECORD(PYBPF_EVENT_MEMORY),
	.take = take,
	.add_count = add_count,
	.needs_records = true,
	.forget_process = forget_process,
	.tell = tell,
};
