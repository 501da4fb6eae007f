// SPDX-License-Identifier: Apache-2.0
/* Turns the kernel's stack records into stacks of the profile. */
#include "symbols/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/own.h"
#include "cpython/opcodes.h"
#include "symbols/tasks/tasks.h"

struct stack {
	uint64_t id;
	uint32_t index; /* in the profile */
	uint16_t join;  /* enum native_join */
	uint16_t end;   /* enum pybpf_native_end */
};

/* A deferred stack: one of its code objects was not known yet, since its announcement was on the way on another CPU. */
struct deferred {
	struct deferred *next;
	struct pybpf_stack_event event; /* followed by its frames */
};

/* The deferred stacks of one process. */
struct waiting {
	uint64_t proc_id;
	struct deferred *stacks;
};

struct stacks {
	struct pysym *pysym;
	struct profile *profile;
	struct intern table;   /* struct stack */
	struct intern waiting; /* struct waiting */
	struct tasks tasks;
	uint64_t count;
	struct kernel_names *kernel;
	struct native_frames *native;
	stacks_on_first_use *on_first_use;
	void *on_first_use_arg;
	const struct profile_edit_texts *own; /* NULL: none */
};

struct stacks *stacks_new(struct pysym *pysym, struct profile *profile)
{
	struct stacks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pysym = pysym;
	t->profile = profile;
	intern_init(&t->table, sizeof(struct stack), sizeof(uint64_t));
	intern_init(&t->waiting, sizeof(struct waiting), sizeof(uint64_t));
	tasks_init(&t->tasks);
	return t;
}

void stacks_set_on_first_use(struct stacks *t, stacks_on_first_use *on_first_use, void *arg)
{
	t->on_first_use = on_first_use;
	t->on_first_use_arg = arg;
}

void stacks_set_own(struct stacks *t, const struct profile_edit_texts *paths)
{
	t->own = paths;
}

static enum profile_origin origin_of(const struct stacks *t, const struct pysym_frame *named)
{
	if (t->own && (profile_is_in(t->own, named->path) || profile_is_in(t->own, named->file)))
		return PROFILE_OWN;
	/* A function that is defined there makes the whole file the program's own. */
	if (named->console_script && strcmp(named->name, "<module>") == 0)
		return PROFILE_THIRD_PARTY;
	return pysym_origin(named->path);
}

void stacks_name_kernel(struct stacks *t, struct kernel_names *kernel)
{
	t->kernel = kernel;
}

void stacks_set_native(struct stacks *t, struct native_frames *native)
{
	t->native = native;
}

static void free_first(struct waiting *w)
{
	struct deferred *d = w->stacks;

	w->stacks = d->next;
	free(d);
}

void stacks_free(struct stacks *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->waiting.count; i++) {
		struct waiting *w = intern_item(&t->waiting, i);

		while (w->stacks)
			free_first(w);
	}
	tasks_free(&t->tasks);
	intern_free(&t->waiting);
	intern_free(&t->table);
	free(t);
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

/* Returns the bytes of frames and addresses behind the event's header. */
static size_t bytes_behind(const struct pybpf_stack_event *event)
{
	return pybpf_kept_frames(event->depth) * sizeof(struct pybpf_frame) +
	       (event->nr_kernel + (size_t)event->nr_native) * sizeof(uint64_t);
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

/* Puts what is said of the whole stack at its root. */
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

/*
 * Builds the profile's stack. last: nothing more will become known. Sets index, join and end of *made. Returns 0,
 * -ENOENT when a name is not known yet, or -ENOMEM.
 */
static int build(struct stacks *t, const struct pybpf_stack_event *event, bool last, struct stack *made)
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

int stacks_add_tasks(struct stacks *t, const struct pybpf_task_event *event, size_t size)
{
	return tasks_add(&t->tasks, event, size, t->profile);
}

static int keep(struct stacks *t, const struct stack *made)
{
	bool fresh;

	if (intern_add(&t->table, made, &fresh) == INTERN_NONE)
		return -ENOMEM;
	t->count += fresh;
	return 0;
}

static int defer(struct stacks *t, const struct pybpf_stack_event *event, size_t size)
{
	struct deferred *d = malloc(offsetof(struct deferred, event) + size);
	struct waiting *w, none = {.proc_id = event->proc_id};
	uint32_t i = d ? intern_add(&t->waiting, &none, &(bool){false}) : INTERN_NONE;

	if (i == INTERN_NONE) {
		free(d);
		return -ENOMEM;
	}
	w = intern_item(&t->waiting, i);
	memcpy(&d->event, event, size);
	d->next = w->stacks;
	w->stacks = d;
	return 0;
}

int stacks_add(struct stacks *t, const struct pybpf_stack_event *event, size_t size)
{
	struct stack made = {0};
	int err;

	if (size < sizeof(*event) || event->nr_kernel > PYBPF_KERNEL_FRAMES || event->nr_native > PYBPF_NATIVE_FRAMES ||
	    size < sizeof(*event) + bytes_behind(event))
		return -EBADMSG;
	if (!pysym_has_process(t->pysym, event->proc_id))
		return -ENOENT;
	made.id = event->stack_id;
	err = build(t, event, false, &made);
	if (err == -ENOENT)
		return defer(t, event, size);
	return err ? err : keep(t, &made);
}

/* Builds the first of the stacks that wait, which then waits no more. Returns as build(). */
static int finish_first(struct stacks *t, struct waiting *w, bool last)
{
	const struct pybpf_stack_event *event = &w->stacks->event;
	struct stack made = {.id = event->stack_id};
	int err = build(t, event, last, &made);

	err = err ? err : keep(t, &made);
	if (!err)
		free_first(w);
	return err;
}

/* Returns the number of stacks that are given up. */
static size_t finish(struct stacks *t, uint32_t index)
{
	struct waiting *w = intern_item(&t->waiting, index);
	size_t lost = 0;

	while (w->stacks) {
		if (!finish_first(t, w, true))
			continue;
		free_first(w);
		lost++;
	}
	intern_remove(&t->waiting, index);
	return lost;
}

/* Takes those that still wait aside, in the order in which they came, and puts them back. */
static void retry(struct stacks *t, struct waiting *w)
{
	struct deferred *again = NULL;

	while (w->stacks) {
		struct deferred *d = w->stacks;

		if (!finish_first(t, w, false))
			continue;
		w->stacks = d->next;
		d->next = again;
		again = d;
	}
	while (again) {
		struct deferred *d = again;

		again = d->next;
		d->next = w->stacks;
		w->stacks = d;
	}
}

void stacks_retry(struct stacks *t)
{
	for (uint32_t i = t->waiting.count; i-- > 0;) {
		struct waiting *w = intern_item(&t->waiting, i);

		retry(t, w);
		if (!w->stacks)
			intern_remove(&t->waiting, i);
	}
}

size_t stacks_finish_process(struct stacks *t, uint64_t proc_id)
{
	uint32_t i = intern_find(&t->waiting, &proc_id);

	return i == INTERN_NONE ? 0 : finish(t, i);
}

size_t stacks_finish(struct stacks *t)
{
	size_t lost = 0;

	while (t->waiting.count)
		lost += finish(t, t->waiting.count - 1);
	return lost;
}

uint32_t stacks_find(const struct stacks *t, uint64_t stack_id)
{
	uint32_t i = intern_find(&t->table, &stack_id);

	return i == INTERN_NONE ? PROFILE_NONE : ((const struct stack *)intern_item(&t->table, i))->index;
}

enum pybpf_native_end stacks_find_native(const struct stacks *t, uint64_t stack_id, enum native_join *join)
{
	uint32_t i = intern_find(&t->table, &stack_id);
	const struct stack *found;

	*join = NATIVE_JOIN_NONE;
	if (i == INTERN_NONE)
		return PYBPF_NATIVE_NOT_ASKED;
	found = intern_item(&t->table, i);
	*join = found->join;
	return found->end;
}

void stacks_remove(struct stacks *t, uint64_t stack_id)
{
	uint32_t i = intern_find(&t->table, &stack_id);

	if (i != INTERN_NONE)
		intern_remove(&t->table, i);
}

static const struct stack *stack_of(const struct stacks *t, const void *id)
{
	uint32_t i = intern_find(&t->table, id);

	return i == INTERN_NONE ? NULL : intern_item(&t->table, i);
}

/* Adds the copies of the stacks to the table. copied: by stack of the other profile. Returns 0 or -ENOMEM. */
static int add_copies(struct stacks *t, const struct stacks *from, const struct intern *ids, const uint32_t *copied)
{
	bool fresh;

	for (uint32_t i = 0; i < ids->count; i++) {
		const struct stack *stack = stack_of(from, intern_item(ids, i));
		struct stack copy;

		if (!stack)
			continue;
		copy = *stack;
		copy.index = copied[stack->index];
		if (intern_add(&t->table, &copy, &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

int stacks_keep(struct stacks *t, const struct stacks *from, const struct intern *ids)
{
	size_t count = profile_stack_count(from->profile);
	bool *wanted = calloc(count, sizeof(*wanted));
	uint32_t *copied = calloc(count, sizeof(*copied));
	int err = wanted && copied ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < ids->count && !err; i++) {
		const struct stack *stack = stack_of(from, intern_item(ids, i));

		if (stack)
			wanted[stack->index] = true;
	}
	err = err ?: profile_copy_stacks(t->profile, from->profile, wanted, copied);
	err = err ?: add_copies(t, from, ids, copied);
	free(wanted);
	free(copied);
	return err;
}

uint64_t stacks_count(const struct stacks *t)
{
	return t->count;
}
