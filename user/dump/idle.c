// SPDX-License-Identifier: Apache-2.0
/* Gives each stack its wait as a leaf, as profiles of waits have it, and looks for those in idle places. */
#include "dump/idle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/idle.h"

static bool waits(const struct dump_thread *thread)
{
	return thread->stack != PROFILE_ROOT && !thread->facts.is_moving && !thread->state_unread &&
	       thread->state.wait.state != PYBPF_STATE_RUNNING;
}

/* Without what it waits for: that of a wait that has not ended does not say whether an event loop gets work or answers.
 */
static uint32_t add_wait(struct dump_process *process, const struct dump_thread *thread)
{
	const char *state = session_state_name(thread->state.wait.state);
	uint32_t frame;
	char name[64];

	snprintf(name, sizeof(name), "[%s]", state);
	frame = profile_add_wait(process->stacks, state, name, 0);
	return frame == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(process->stacks, thread->stack, frame);
}

int dump_find_idle(struct dump_process *process)
{
	uint32_t *stacks = calloc(process->count + 1, sizeof(*stacks));
	bool *idle = NULL;
	int err = stacks ? 0 : -ENOMEM;

	for (size_t i = 0; i < process->count && !err; i++) {
		stacks[i] = waits(&process->threads[i]) ? add_wait(process, &process->threads[i]) : PROFILE_ROOT;
		err = stacks[i] == PROFILE_NONE ? -ENOMEM : 0;
	}
	if (!err)
		idle = profile_idle_stacks(process->stacks);
	if (!idle)
		err = -ENOMEM;
	for (size_t i = 0; i < process->count && !err; i++)
		process->threads[i].is_idle = stacks[i] != PROFILE_ROOT && idle[stacks[i]];
	free(idle);
	free(stacks);
	return err;
}
