// SPDX-License-Identifier: Apache-2.0
/* What the text and JSON of a picture have in common. */
#include <stdio.h>
#include <stdlib.h>

#include "dump/dump.h"

uint32_t *dump_frames(const struct dump_process *process, uint32_t stack, size_t *count)
{
	uint32_t *frames;
	size_t at = 0;

	for (uint32_t s = stack; s != PROFILE_ROOT; s = profile_stack_at(process->stacks, s)->parent)
		at++;
	*count = at;
	frames = calloc(at + 1, sizeof(*frames));
	for (uint32_t s = stack; frames && s != PROFILE_ROOT; s = profile_stack_at(process->stacks, s)->parent)
		frames[--at] = profile_stack_at(process->stacks, s)->frame;
	return frames;
}

void dump_name_state(const struct dump_thread *thread, char *out, size_t size)
{
	/* /proc does not tell a thread on a CPU from one that waits for a CPU. */
	if (thread->state.wait.state == PYBPF_STATE_RUNNING)
		snprintf(out, size, "[running]");
	else
		session_name_wait(&thread->state.wait, out, size);
}

const struct dump_thread *dump_find_holder(const struct dump_process *process, const struct dump_thread *thread)
{
	if (thread->state.wait.state != PYBPF_STATE_GIL)
		return NULL;
	for (size_t i = 0; i < process->count; i++) {
		const struct dump_thread *other = &process->threads[i];

		if (other->has_gil && other->gil == thread->gil)
			return other;
	}
	return NULL;
}
