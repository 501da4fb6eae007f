// SPDX-License-Identifier: Apache-2.0
/* Compiles the walk of bpf/walk.h for user space. */
#include "symbols/walk_user.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/remote.h"
#include "symbols/current_tasks.h"

struct walk;
static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr);
#define WALK_NOTES_FRAMES
static void walk_note_frame(struct walk *w, uint32_t slot);

/* Tasks are looked for where the runtime says where they are. */
#define WALK_TASKS 1
static uint64_t current_task(struct walk *w, uint64_t tstate);
#define WALK_CURRENT_TASK(w, tstate) current_task(w, tstate)

#include "walk.h"
#include "walk_gil.h"
/* A stack of coroutines has one for each function. */
#define WALK_HANDLED PYBPF_MAX_FRAMES
#include "walk_status.h"

struct user_walk {
	struct walk walk; /* first, so that walk_read finds the rest */
	const struct walk_memory *memory;
	const struct pybpf_layout *layout;
	uint32_t compiled;                    /* as walk.compiled when the last frame was noted */
	uint64_t addresses[PYBPF_MAX_FRAMES]; /* of the frames in walk.frames; 0: it has no variables of Python's */
};

/* Returns the task that a thread of Python 3.7 to 3.13 runs, or 0. */
static uint64_t current_task(struct walk *w, uint64_t tstate)
{
	const struct user_walk *u = (const struct user_walk *)w;
	uint64_t tasks = w->asyncio.current_tasks, loop = pysym_running_loop(u->memory, u->layout, tasks, tstate);

	return loop ? pysym_current_task(u->memory, u->layout, tasks, loop) : 0;
}

static void walk_note_frame(struct walk *w, uint32_t slot)
{
	struct user_walk *u = (struct user_walk *)w;

	u->addresses[slot] = w->compiled == u->compiled ? w->last_frame : 0;
	u->compiled = w->compiled;
}

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
	struct user_walk *u = calloc(1, sizeof(*u));
	struct gil_owner owner = {0};
	uint64_t holder = 0;

	if (!u)
		return 0;
	u->memory = memory;
	if (read_owner(&u->walk, layout, gil, &owner))
		holder = owner.last_holder;
	free(u);
	return holder;
}

/* Returns whose a collection is, also if the thread runs a finalizer in it. */
static enum pybpf_collection find_collection(struct user_walk *u, uint32_t kept)
{
	__u64 frame;
	enum pybpf_collection found = walk_find_collection(&u->walk, u->layout, &frame);

	for (uint32_t i = 0; found == PYBPF_COLLECTION_OTHERS && i < kept; i++) {
		if (u->addresses[i] == frame)
			return PYBPF_COLLECTION_OWN;
	}
	return found;
}

/*
 * Takes the known states as if a search had come to them. Returns whether the thread can have no others: one that it
 * attached since would be the last one, which 3.12+ tell, and so would be a second interpreter before.
 */
static bool take_states(struct user_walk *u, const struct walk_known_states *known)
{
	struct walk *w = &u->walk;

	if (!known || !known->count || known->count > WALK_STATES ||
	    (!known->exact && walk_may_have_swapped(w, u->layout)))
		return false;
	for (uint32_t i = 0; i < known->count; i++) {
		enum walk_owner owner = walk_read_tstate(w, u->layout, known->tstates[i]);

		w->tstate = known->tstates[i];
		if (owner != WALK_NOT_OURS)
			walk_keep_state(w, u->layout, owner);
	}
	if (known->exact || (w->states.count && (w->last || !u->layout->tstate_status)))
		return true;
	walk_look_for_states(w);
	return false;
}

int walk_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		const struct pybpf_runtime *runtime, uint64_t thread_id, uint64_t futex, uint64_t stack_pointer,
		struct walk_stack *out)
{
	return walk_known_thread(memory, layout, runtime, thread_id, NULL, futex, stack_pointer, out);
}

int walk_known_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		      const struct pybpf_runtime *runtime, uint64_t thread_id, const struct walk_known_states *known,
		      uint64_t futex, uint64_t stack_pointer, struct walk_stack *out)
{
	struct user_walk *u = calloc(1, sizeof(*u));
	struct gil_owner owner = {0};
	uint64_t current = 0;
	enum walk_answer answer;
	__u64 exception;
	uint32_t kept, steps = 0;
	int err = -ENOENT, done = 0;

	memset(out, 0, sizeof(*out));
	if (!u)
		return -ENOMEM;
	u->memory = memory;
	u->walk.thread_id = thread_id;
	u->walk.stack_pointer = stack_pointer;
	u->walk.interp_head = runtime->interp_head;
	u->walk.code_type = runtime->code_type;
	u->walk.asyncio = runtime->asyncio;
	u->layout = layout;
	if (runtime->tstate_current)
		walk_read(&u->walk, &current, sizeof(current), runtime->tstate_current);
	walk_start(&u->walk, layout, current, NULL);
	if (take_states(u, known)) {
		u->walk.result = WALK_NO_THREAD_STATE;
		done = walk_end_of_lists(&u->walk, layout);
	}
	for (; !done && steps < WALK_STEPS; steps++) {
		if (u->walk.task_due)
			walk_find_task(&u->walk, layout);
		done = walk_step(&u->walk, layout);
	}
	if (!done)
		walk_no_stack(&u->walk);
	if (u->walk.result == WALK_UNREADABLE)
		err = -EFAULT;
	if (u->walk.result != WALK_OK)
		goto done;
	kept = u->walk.stack.depth > PYBPF_MAX_FRAMES ? PYBPF_MAX_FRAMES : u->walk.stack.depth;
	out->frames = malloc((kept ? kept : 1) * (sizeof(*out->frames) + sizeof(*out->addresses)));
	err = -ENOMEM;
	if (!out->frames)
		goto done;
	memcpy(out->frames, u->walk.frames, kept * sizeof(*out->frames));
	out->addresses = (uint64_t *)(out->frames + kept);
	memcpy(out->addresses, u->addresses, kept * sizeof(*out->addresses));
	out->depth = u->walk.stack.depth;
	out->flags = u->walk.stack.flags;
	out->gil = walk_find_gil(&u->walk, layout);
	out->tstate = u->walk.tstate;
	out->task = u->walk.task;
	out->contexts = u->walk.contexts;
	out->task_depth = u->walk.stack.task_depth;
	walk_read(&u->walk, &out->interp, sizeof(out->interp), walk_innermost_tstate(&u->walk) + layout->tstate_interp);
	answer = walk_find_exception(&u->walk, layout, &exception);
	out->exception_known = answer != WALK_UNKNOWN;
	out->exception = answer == WALK_YES ? exception : 0;
	out->collection = find_collection(u, kept);
	out->wants_gil = find_gil_futex(&u->walk, layout, out->gil, futex) != GIL_FUTEX_NONE;
	out->has_gil =
		out->gil && read_owner(&u->walk, layout, out->gil, &owner) && owner.last_holder == u->walk.tstate;
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

struct walk_frames {
	struct user_walk u;
	const struct pybpf_layout *layout;
};

struct walk_frames *walk_frames_new(void)
{
	return calloc(1, sizeof(struct walk_frames));
}

void walk_frames_free(struct walk_frames *frames)
{
	free(frames);
}

void walk_frames_begin(struct walk_frames *frames, const struct walk_memory *memory, const struct pybpf_layout *layout,
		       const struct pybpf_runtime *runtime, uint64_t proc_id, uint64_t interp)
{
	struct walk *w = &frames->u.walk;

	frames->u.memory = memory;
	frames->layout = layout;
	w->code_type = runtime->code_type;
	w->proc_id = proc_id;
	w->tstate_interp = interp;
	walk_trust_codes(w, layout);
}

int walk_frames_read(struct walk_frames *frames, uint64_t addr, struct pybpf_frame *out)
{
	const struct pybpf_layout *layout = frames->layout;
	struct walk *w = &frames->u.walk;
	uint32_t sig, flag;
	uint64_t code;

	w->steps = 0;
	w->stack.depth = 1; /* it is not the frame that runs */
	if (layout->frame_window > PYBPF_FRAME_WINDOW || walk_read(w, w->chunk, layout->frame_window, addr))
		return -EFAULT;
	/* Frames of 3.11 have an owner, too, which its layout leaves out. */
	if (layout->minor >= 12 && walk_frame_u8(w, 0, layout->frame_owner) != WALK_OWNED_BY_GENERATOR)
		return -EFAULT;
	code = walk_frame_u64(w, 0, layout->frame_code) & ~(uint64_t)layout->code_tag_mask;
	flag = walk_code(w, layout, code, &sig);
	if (flag == WALK_CODE_GOES_ON) {
		while (!walk_texts_more(w)) {
			if (w->steps > PYBPF_MAX_WALK)
				return -EFAULT;
		}
		sig = walk_code_end(w, code);
	} else if (flag) {
		return -EFAULT;
	}
	out->word = code;
	out->sig = sig;
	out->position = walk_position(w, layout, code, addr, 0, walk_tlbc_index(w, layout, 0));
	return 0;
}
