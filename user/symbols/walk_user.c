// SPDX-License-Identifier: Apache-2.0
/* Compiles the walk of bpf/walk.h for user space. */
#include "symbols/walk_user.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/remote.h"
#include "pybpf_wait.h"

struct walk;
static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr);

#include "walk.h"

struct user_walk {
	struct walk walk; /* first, so that walk_read finds the rest */
	const struct walk_memory *memory;
};

static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr)
{
	const struct walk_memory *memory = ((struct user_walk *)w)->memory;

	return memory->read(memory->source, addr, dst, size);
}

static int read_process(void *source, uint64_t addr, void *dst, size_t size)
{
	return remote_read(*(const pid_t *)source, addr, dst, size);
}

void walk_process_memory(struct walk_memory *memory, const pid_t *pid)
{
	memory->read = read_process;
	memory->source = (void *)pid;
}

int walk_read_code(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr, bool texts,
		   struct walk_code *out)
{
	struct user_walk *u = calloc(1, sizeof(*u));
	int err = -EFAULT;

	if (!u)
		return -ENOMEM;
	u->memory = memory;
	if (walk_window(&u->walk, addr, layout->code_window, PYBPF_CODE_WINDOW))
		goto done;
	out->name = walk_u64(&u->walk,
			     layout->code_qualname != PYBPF_NO_OFFSET ? layout->code_qualname : layout->code_name);
	out->file = walk_u64(&u->walk, layout->code_filename);
	out->lines = walk_u64(&u->walk, layout->code_linetable);
	out->first_line = (int32_t)walk_u32(&u->walk, layout->code_firstlineno);
	u->walk.next_interp = texts;
	if (!walk_code_begin(&u->walk, layout)) {
		while (!walk_texts_more(&u->walk) && u->walk.steps <= PYBPF_MAX_WALK)
			;
	}
	out->sig = walk_code_end(&u->walk, addr);
	err = 0;
done:
	free(u);
	return err;
}

uint64_t walk_gil_holder(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t gil)
{
	uint64_t owner[2]; /* last_holder, locked */

	gil += PYBPF_GIL_LAST_HOLDER + (layout->free_threaded ? 8 : 0);
	if (memory->read(memory->source, gil, owner, sizeof(owner)) || (uint32_t)owner[1] != 1)
		return 0;
	return owner[0];
}

int walk_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		const struct pybpf_runtime *runtime, uint64_t thread_id, struct walk_stack *out)
{
	struct user_walk *u = calloc(1, sizeof(*u));
	uint64_t current = 0;
	uint32_t kept, steps = 0;
	int err = -ENOENT;

	memset(out, 0, sizeof(*out));
	if (!u)
		return -ENOMEM;
	u->memory = memory;
	u->walk.thread_id = thread_id;
	u->walk.interp_head = runtime->interp_head;
	u->walk.code_type = runtime->code_type;
	if (runtime->tstate_current)
		walk_read(&u->walk, &current, sizeof(current), runtime->tstate_current);
	walk_start(&u->walk, layout, current, NULL);
	while (!walk_step(&u->walk, layout)) {
		if (++steps == WALK_STEPS) {
			walk_no_stack(&u->walk);
			break;
		}
	}
	if (u->walk.result != WALK_OK)
		goto done;
	kept = u->walk.stack.depth > PYBPF_MAX_FRAMES ? PYBPF_MAX_FRAMES : u->walk.stack.depth;
	out->frames = malloc((kept ? kept : 1) * sizeof(*out->frames));
	err = -ENOMEM;
	if (!out->frames)
		goto done;
	memcpy(out->frames, u->walk.frames, kept * sizeof(*out->frames));
	out->depth = u->walk.stack.depth;
	out->flags = u->walk.stack.flags;
	out->gil = walk_find_gil(&u->walk, layout);
	out->tstate = u->walk.tstate;
	out->has_gil = out->gil && walk_gil_holder(memory, layout, out->gil) == out->tstate;
	err = 0;
done:
	free(u);
	return err;
}

struct pybpf_stack_event *walk_stack_event(const struct walk_stack *stack, uint64_t proc_id, uint32_t runtime)
{
	size_t kept = stack->depth > PYBPF_MAX_FRAMES ? PYBPF_MAX_FRAMES : stack->depth;
	size_t size = sizeof(struct pybpf_stack_event) + kept * sizeof(*stack->frames);
	struct pybpf_stack_event *event = kept ? calloc(1, size) : NULL;

	if (!event)
		return NULL;
	event->event =
		(struct pybpf_event){.type = PYBPF_EVENT_STACK, .runtime = (uint8_t)runtime, .size = (uint32_t)size};
	event->proc_id = proc_id;
	event->depth = stack->depth;
	event->flags = stack->flags;
	memcpy(event + 1, stack->frames, kept * sizeof(*stack->frames));
	return event;
}
