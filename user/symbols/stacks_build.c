// SPDX-License-Identifier: Apache-2.0
/* Builds a stack of the profile of a record of the kernel, or of a suspended task, from its root on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cpython/opcodes.h"
#include "profile/application_frames.h"
#include "symbols/stacks_internal.h"

static enum profile_origin origin_of(const struct stacks *t, const struct pysym_frame *named)
{
	if (t->own && (profile_is_in(t->own, named->path) || profile_is_in(t->own, named->file)))
		return PROFILE_OWN;
	/* A function that is defined there makes the whole file the program's own. */
	if (named->console_script && strcmp(named->name, "<module>") == 0)
		return PROFILE_THIRD_PARTY;
	return pysym_origin(named->path);
}

/* Returns how many frames of the middle are not kept. */
static uint32_t cut_frames(const struct pybpf_stack_event *event)
{
	return event->depth - pybpf_kept_frames(event->depth);
}

/* Returns the slot of the i-th kept frame, counted from the leaf. */
static uint32_t frame_slot(const struct pybpf_stack_event *event, uint32_t i)
{
	return pybpf_frame_slot(i < PYBPF_HALF_FRAMES ? i : i + cut_frames(event));
}

static uint32_t push_text(struct stacks *t, uint32_t stack, enum profile_frame_kind kind, const char *text)
{
	uint32_t frame = profile_add_frame(t->profile, kind, text, "", PROFILE_NO_LINE, PROFILE_NO_LINE);

	return frame == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(t->profile, stack, frame);
}

static uint32_t push_note(struct stacks *t, uint32_t stack, const char *text)
{
	return push_text(t, stack, PROFILE_NOTE, text);
}

static const char *pseudo_name(enum pybpf_counter reason)
{
	switch (reason) {
	case PYBPF_COUNT_NO_THREAD_STATE:
		return "[threads without Python]";
	case PYBPF_COUNT_NO_FRAMES:
		return "[outside of Python functions]";
	default:
		return "[no interpreter]";
	}
}

uint32_t stacks_add_pseudo(struct stacks *t, const struct pybpf_pseudo_stack *pseudo)
{
	uint32_t stack = push_note(t, PROFILE_ROOT, pseudo_name(pseudo->no_frames_reason));
	char name[sizeof("[thread ]") + sizeof(pseudo->comm)];

	if (stack == PROFILE_NONE || !pseudo->comm[0])
		return stack;
	snprintf(name, sizeof(name), "[thread %.*s]", (int)sizeof(pseudo->comm), pseudo->comm);
	return push_text(t, stack, PROFILE_THREAD, name);
}

/*
 * Puts a frame on top of *stack. rights: those with which its source may be read, or NULL. Returns 0, -ENOENT when its
 * code object is not known, -ENOMEM.
 */
static int push_frame(struct stacks *t, const struct pybpf_stack_event *event, const struct pybpf_frame *frame,
		      const struct pybpf_rights *rights, uint32_t *stack)
{
	struct pysym_frame named;
	int err = pysym_resolve(t->pysym, event->proc_id, event->event.runtime, frame, &named);

	if (err)
		return err;
	if (named.hidden)
		return 0;
	if (*named.cookie == PROFILE_NONE) {
		const struct profile_place place = {.line = named.line,
						    .first_line = named.first_line,
						    .end_line = named.span.end_line,
						    .column = named.span.column,
						    .end_column = named.span.end_column};

		*named.cookie = profile_add_python(t->profile, named.name, named.file, &place);
		if (profile_set_origin(t->profile, named.file, origin_of(t, &named)))
			return -ENOMEM;
		if (t->on_first_use && rights &&
		    t->on_first_use(t->on_first_use_arg, &(struct stacks_function){event->proc_id, event->event.runtime,
										   frame, &named, rights}))
			return -ENOMEM;
	}
	if (*named.cookie == PROFILE_NONE)
		return -ENOMEM;
	*stack = profile_add_stack(t->profile, *stack, *named.cookie);
	return *stack == PROFILE_NONE ? -ENOMEM : 0;
}

/* Puts the instruction that the last frame executes on top of a stack. Returns that stack, or PROFILE_NONE. */
static uint32_t push_opcode(struct stacks *t, const struct pybpf_stack_event *event, uint32_t stack)
{
	const struct pybpf_layout *layout = pysym_layout(t->pysym, event->proc_id, event->event.runtime);
	char name[OPCODES_NAME_MAX];

	if (!event->opcode)
		return stack;
	if (event->opcode >= PYBPF_OPCODE_UNKNOWN || !layout)
		return push_note(t, stack, "[opcode not read]");
	opcodes_name(layout, (uint8_t)(event->opcode - PYBPF_OPCODE(0)), name);
	return push_note(t, stack, name);
}

/*
 * Returns whether the function begins what a thread that leaves its CPU goes through for the program that takes its
 * stack: the tracepoint's function (since 5.10, d25e37d89dd2) or, where that is inlined, the one that runs programs.
 */
static bool is_of_switch_program(const char *name)
{
	static const char trace[] = "__traceiter_sched_switch", run[] = "bpf_trace_run", inner[] = "__bpf_trace_";

	return strncmp(name, trace, strlen(trace)) == 0 || strncmp(name, run, strlen(run)) == 0 ||
	       strncmp(name, inner, strlen(inner)) == 0;
}

/* Puts the functions of the kernel on top of a stack. Returns that stack, or PROFILE_NONE. */
static uint32_t push_kernel(struct stacks *t, const struct pybpf_stack_event *event, uint32_t stack)
{
	const struct pybpf_frame *frames = (const void *)(event + 1);
	const uint64_t *addresses = (const void *)(frames + pybpf_kept_frames(event->depth));
	char name[KERNEL_NAME_MAX];

	for (uint32_t i = t->kernel ? event->nr_kernel : 0; i-- > 0 && stack != PROFILE_NONE;) {
		/* All but the leaf are where a call returns to, which may be behind the end of the caller. */
		kernel_names_find(t->kernel, addresses[i] - (i ? 1 : 0), name);
		if (is_of_switch_program(name))
			break;
		stack = push_text(t, stack, PROFILE_KERNEL, name);
	}
	return stack;
}

/* Returns the number of frames from the leaf to the last one that C code called, if that is not the root; else 0. */
static uint32_t depth_of_last_run(const struct pybpf_stack_event *event)
{
	const struct pybpf_frame *frames = (const void *)(event + 1);

	for (uint32_t i = 0; i + 1 < pybpf_kept_frames(event->depth); i++) {
		if (frames[frame_slot(event, i)].entry)
			return i + 1;
	}
	return 0;
}

/*
 * Returns the number of kept frames from the leaf on that belong to the task. They begin with that of its coroutine; if
 * that one was cut, where the cut is; if the coroutine is no Python function or is not running, with the function that
 * C code called last, which is the task's own code.
 */
static uint32_t kept_task_depth(const struct pybpf_stack_event *event)
{
	uint32_t cut = cut_frames(event), depth = event->task_depth;

	if (!event->task_id || !depth)
		return event->task_id ? depth_of_last_run(event) : 0;
	if (depth <= PYBPF_HALF_FRAMES)
		return depth;
	return depth - PYBPF_HALF_FRAMES > cut ? depth - cut : PYBPF_HALF_FRAMES;
}

static bool has_native(const struct stacks *t, const struct pybpf_stack_event *event)
{
	return t->native && event->native_end != PYBPF_NATIVE_NOT_ASKED;
}

/* A stack's native frames lie behind all else. */
static int begin_native(struct stacks *t, const struct pybpf_stack_event *event, bool last, struct native_stack *out)
{
	const struct pybpf_frame *frames = (const void *)(event + 1);
	const uint64_t *kernel = (const void *)(frames + pybpf_kept_frames(event->depth));
	uint32_t entries = 0, kept = event->pseudo.no_frames_reason ? 0 : pybpf_kept_frames(event->depth);

	*out = (struct native_stack){.count = 0};
	if (!has_native(t, event))
		return 0;
	for (uint32_t i = 0; i < kept; i++)
		entries += frames[i].entry;
	/* Entries that were cut are missing: the runs of the evaluation loop are more, and the stack is no whole one.
	 */
	return native_frames_begin(t->native, event, kernel + event->nr_kernel, entries, last, out);
}

/* Builds the stack of a sample without Python frames. */
static int build_pseudo(struct stacks *t, const struct pybpf_stack_event *event, struct native_stack *native,
			uint32_t *out)
{
	int err = 0;

	*out = stacks_add_pseudo(t, &event->pseudo);
	if (*out != PROFILE_NONE && has_native(t, event))
		err = native_frames_push_rest(t->native, native, t->profile, out);
	if (!err && *out != PROFILE_NONE)
		*out = push_kernel(t, event, *out);
	return *out == PROFILE_NONE ? -ENOMEM : err;
}

/* A stack that is being built, from its root on. */
struct building {
	const struct pybpf_stack_event *event;
	struct native_stack native;
	uint32_t stack;      /* of the profile, so far; PROFILE_NONE: no memory */
	uint32_t task_depth; /* kept_task_depth() */
	bool last;           /* nothing more will become known, so frames without a name get a note */
};

/* Puts notes about the whole stack at its root. */
static void push_begin(struct stacks *t, struct building *b)
{
	uint32_t flags = b->event->flags;

	b->stack = PROFILE_ROOT;
	if (flags & PYBPF_STACK_OUTER)
		b->stack = push_note(t, b->stack, "[called from another Python]");
	if (b->stack == PROFILE_NONE)
		return;
	if (flags & PYBPF_STACK_NO_ROOT)
		b->stack = push_note(t, b->stack, "[root not reached]");
	else if (flags & (PYBPF_STACK_FAULT | PYBPF_STACK_CYCLE | PYBPF_STACK_NO_CALLERS))
		b->stack = push_note(t, b->stack, "[incomplete]");
}

static void push_cut(struct stacks *t, struct building *b)
{
	uint32_t cut = cut_frames(b->event);
	char note[64];

	snprintf(note, sizeof(note), "[%u frame%s cut]", cut, cut == 1 ? "" : "s");
	b->stack = push_note(t, b->stack, note);
}

/* Puts frame i, and what belongs right below it, on top. Returns 0, -ENOENT or -ENOMEM. */
static int push_next(struct stacks *t, struct building *b, uint32_t i)
{
	const struct pybpf_frame *frames = (const void *)(b->event + 1);
	const struct pybpf_frame *frame = &frames[frame_slot(b->event, i)];
	int err = 0;

	if (frame->entry && has_native(t, b->event))
		err = native_frames_push_run(t->native, &b->native, t->profile, &b->stack);
	if (err)
		return err;
	if (i + 1 == b->task_depth)
		b->stack = tasks_push(&t->tasks, b->event->task_id, t->profile, b->stack);
	if (b->stack == PROFILE_NONE)
		return -ENOMEM;
	if (frame->kind == PYBPF_FRAME_MARKER)
		b->stack = push_note(t, b->stack, "[another interpreter]");
	else
		err = push_frame(t, b->event, frame, &b->event->rights, &b->stack);
	if (err == -ENOENT && b->last) {
		b->stack = push_note(t, b->stack, "[unnamed]");
		err = 0;
	}
	if (!err && i == PYBPF_HALF_FRAMES && cut_frames(b->event))
		push_cut(t, b);
	return err;
}

/* Puts on top what the last Python function does, and where it is. Returns 0 or -ENOMEM. */
static int push_end(struct stacks *t, struct building *b)
{
	const struct pybpf_stack_event *event = b->event;
	uint32_t stack = b->stack;

	if (!b->task_depth && stack != PROFILE_NONE)
		stack = tasks_push(&t->tasks, event->task_id, t->profile, stack);
	if (stack != PROFILE_ROOT && stack != PROFILE_NONE)
		stack = push_opcode(t, event, stack);
	/* All frames are hidden. */
	if (stack == PROFILE_ROOT)
		stack = push_note(t, stack, "[incomplete]");
	if (has_native(t, event) && stack != PROFILE_NONE &&
	    native_frames_push_rest(t->native, &b->native, t->profile, &stack))
		return -ENOMEM;
	/* The last function may have called into the other Python: it is not certain that it ran. */
	if (stack != PROFILE_NONE && event->flags & PYBPF_STACK_BESIDE)
		stack = push_note(t, stack, "[or in another Python]");
	if (stack != PROFILE_NONE && event->flags & PYBPF_STACK_GC)
		stack = push_note(t, stack, "[gc]");
	if (stack != PROFILE_NONE)
		stack = push_kernel(t, event, stack);
	b->stack = stack;
	return stack == PROFILE_NONE ? -ENOMEM : 0;
}

int stacks_build(struct stacks *t, const struct pybpf_stack_event *event, bool last, struct stacks_stack *made)
{
	struct building b = {.event = event, .task_depth = kept_task_depth(event), .last = last};
	int err = begin_native(t, event, last, &b.native);

	if (err)
		return err;
	made->join = b.native.join;
	made->end = b.native.end;
	if (event->pseudo.no_frames_reason)
		return build_pseudo(t, event, &b.native, &made->index);
	push_begin(t, &b);
	for (uint32_t i = pybpf_kept_frames(event->depth); i-- > 0 && b.stack != PROFILE_NONE && !err;)
		err = push_next(t, &b, i);
	err = err ? err : push_end(t, &b);
	made->index = b.stack;
	return err;
}

int stacks_push_suspended(struct stacks *t, const struct pybpf_stack_event *event, const struct pybpf_rights *rights,
			  const struct pybpf_frame *frames, uint32_t *stack)
{
	int err = 0;

	if (!pysym_has_process(t->pysym, event->proc_id))
		return -ENOENT;
	*stack = tasks_push(&t->tasks, event->task_id, t->profile, *stack);
	for (uint32_t i = 0; i < event->depth && *stack != PROFILE_NONE && !err; i++) {
		err = push_frame(t, event, &frames[i], rights, stack);
		if (err == -ENOENT) {
			*stack = push_note(t, *stack, "[unnamed]");
			err = 0;
		}
	}
	return *stack == PROFILE_NONE ? -ENOMEM : err;
}
