// SPDX-License-Identifier: Apache-2.0
/* The variables that were read with a stack, and which frame of the snapshot each belongs to. */
#include "dump/thread_locals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump.h"
#include "dump/stack.h"
#include "symbols/pysym.h"

void dump_forget_locals(struct dump_thread *thread)
{
	free(thread->locals.bytes);
	free(thread->walked);
	free(thread->numbers);
	thread->locals = (struct dump_locals){0};
	thread->walked = NULL;
	thread->numbers = NULL;
	thread->nr_walked = 0;
	thread->nr_numbers = 0;
}

void dump_keep_locals(struct dump_thread *thread, uint32_t runtime, struct dump_stack *stack)
{
	thread->locals = stack->locals;
	thread->walked = stack->walk.frames;
	thread->nr_walked = stack->walk.depth > PYBPF_MAX_FRAMES ? PYBPF_HALF_FRAMES : stack->walk.depth;
	thread->runtime = runtime;
	stack->locals.bytes = NULL;
	stack->walk.frames = NULL;
}

int dump_number_frames(const struct dump_process *process, struct pysym *pysym, uint64_t proc_id,
		       struct dump_thread *thread)
{
	size_t at;
	uint32_t *frames = dump_frames(process, thread->stack, &at);

	thread->numbers = malloc((at + 1) * sizeof(*thread->numbers));
	if (!frames || !thread->numbers) {
		free(frames);
		return -ENOMEM;
	}
	thread->nr_numbers = at;
	memset(thread->numbers, 0xff, (at + 1) * sizeof(*thread->numbers));
	for (uint32_t i = 0; i < thread->nr_walked; i++) {
		struct pysym_frame named;

		if (thread->walked[i].kind == PYBPF_FRAME_MARKER ||
		    pysym_resolve(pysym, proc_id, thread->runtime, &thread->walked[i], &named) || named.hidden)
			continue;
		while (at && profile_frame_at(process->stacks, frames[at - 1])->kind != PROFILE_PYTHON)
			at--;
		if (!at || frames[--at] != *named.cookie)
			break;
		thread->numbers[at] = i;
	}
	free(frames);
	return 0;
}
