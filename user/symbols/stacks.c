// SPDX-License-Identifier: Apache-2.0
/* Turns the kernel's stack records into stacks of the profile. */
#include "symbols/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"

struct stack {
	uint64_t id;
	uint32_t index; /* in the profile */
	uint32_t pad;
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
	uint64_t count;
	stacks_met *met;
	void *met_arg;
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
	return t;
}

void stacks_tell_files(struct stacks *t, stacks_met *met, void *arg)
{
	t->met = met;
	t->met_arg = arg;
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
	intern_free(&t->waiting);
	intern_free(&t->table);
	free(t);
}

static uint32_t kept_frames(const struct pybpf_stack_event *event)
{
	return event->depth > PYBPF_MAX_FRAMES ? PYBPF_MAX_FRAMES : event->depth;
}

/*
 * Returns the slot of the i-th kept frame, counted from the leaf: the root half of a cut stack is a ring that begins
 * after the last one pushed.
 */
static uint32_t frame_slot(const struct pybpf_stack_event *event, uint32_t i)
{
	if (event->depth <= PYBPF_MAX_FRAMES || i < PYBPF_HALF_FRAMES)
		return i;
	return PYBPF_HALF_FRAMES +
	       ((event->depth - PYBPF_HALF_FRAMES + (i - PYBPF_HALF_FRAMES)) & (PYBPF_HALF_FRAMES - 1));
}

static uint32_t push_note(struct stacks *t, uint32_t stack, const char *text)
{
	uint32_t frame = profile_add_frame(t->profile, PROFILE_NOTE, text, "", PROFILE_NO_LINE, PROFILE_NO_LINE);

	return frame == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(t->profile, stack, frame);
}

/* Puts a frame on top of *stack. Returns 0, -ENOENT when its code object is not known, -ENOMEM. */
static int push_frame(struct stacks *t, const struct pybpf_stack_event *event, const struct pybpf_frame *frame,
		      uint32_t *stack)
{
	struct pysym_frame named;
	int err = pysym_resolve(t->pysym, event->proc_id, event->event.runtime, frame, &named);

	if (err)
		return err;
	if (named.hidden)
		return 0;
	if (*named.cookie == PROFILE_NONE) {
		*named.cookie = profile_add_frame(t->profile, PROFILE_PYTHON, named.name, named.file, named.line,
						  named.first_line);
		if (t->met && t->met(t->met_arg, event->proc_id, &event->rights, named.file, named.path))
			return -ENOMEM;
	}
	if (*named.cookie == PROFILE_NONE)
		return -ENOMEM;
	*stack = profile_add_stack(t->profile, *stack, *named.cookie);
	return *stack == PROFILE_NONE ? -ENOMEM : 0;
}

/* Builds the profile's stack, root first. last: nothing more will become known, so frames without a name get a note. */
static int build(struct stacks *t, const struct pybpf_stack_event *event, bool last, uint32_t *out)
{
	const struct pybpf_frame *frames = (const void *)(event + 1);
	uint32_t stack = PROFILE_ROOT, kept = kept_frames(event);
	char note[64];

	if (event->flags & PYBPF_STACK_OUTER)
		stack = push_note(t, stack, "[called from another Python]");
	if (stack == PROFILE_NONE)
		return -ENOMEM;
	if (event->flags & PYBPF_STACK_NO_ROOT)
		stack = push_note(t, stack, "[root not reached]");
	else if (event->flags & (PYBPF_STACK_FAULT | PYBPF_STACK_CYCLE | PYBPF_STACK_NO_CALLERS))
		stack = push_note(t, stack, "[incomplete]");
	for (uint32_t i = kept; i-- > 0 && stack != PROFILE_NONE;) {
		const struct pybpf_frame *frame = &frames[frame_slot(event, i)];
		int err = 0;

		if (frame->kind == PYBPF_FRAME_MARKER)
			stack = push_note(t, stack, "[another interpreter]");
		else
			err = push_frame(t, event, frame, &stack);
		if (err == -ENOENT && last) {
			stack = push_note(t, stack, "[unnamed]");
			err = 0;
		}
		if (err)
			return err;
		if (i == PYBPF_HALF_FRAMES && event->depth > PYBPF_MAX_FRAMES) {
			snprintf(note, sizeof(note), "[%u frames cut]", event->depth - PYBPF_MAX_FRAMES);
			stack = push_note(t, stack, note);
		}
	}
	/* All frames are hidden. */
	if (stack == PROFILE_ROOT)
		stack = push_note(t, stack, "[incomplete]");
	/* The last function may have called into the other Python: it is not certain that it ran. */
	if (stack != PROFILE_NONE && event->flags & PYBPF_STACK_BESIDE)
		stack = push_note(t, stack, "[or in another Python]");
	*out = stack;
	return stack == PROFILE_NONE ? -ENOMEM : 0;
}

static int keep(struct stacks *t, uint64_t id, uint32_t index)
{
	struct stack stack = {.id = id, .index = index};
	bool fresh;

	if (intern_add(&t->table, &stack, &fresh) == INTERN_NONE)
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
	uint32_t index;
	int err;

	if (size < sizeof(*event) || size < sizeof(*event) + kept_frames(event) * sizeof(struct pybpf_frame))
		return -EBADMSG;
	if (!pysym_has_process(t->pysym, event->proc_id))
		return -ENOENT;
	err = build(t, event, false, &index);
	if (err == -ENOENT)
		return defer(t, event, size);
	return err ? err : keep(t, event->stack_id, index);
}

static int finish(struct stacks *t, uint32_t index)
{
	struct waiting *w = intern_item(&t->waiting, index);

	while (w->stacks) {
		const struct pybpf_stack_event *event = &w->stacks->event;
		uint32_t stack;
		int err = build(t, event, true, &stack);

		if (!err)
			err = keep(t, event->stack_id, stack);
		if (err)
			return err;
		free_first(w);
	}
	intern_remove(&t->waiting, index);
	return 0;
}

int stacks_finish_process(struct stacks *t, uint64_t proc_id)
{
	uint32_t i = intern_find(&t->waiting, &proc_id);

	return i == INTERN_NONE ? 0 : finish(t, i);
}

int stacks_finish(struct stacks *t)
{
	int err = 0;

	while (!err && t->waiting.count)
		err = finish(t, t->waiting.count - 1);
	return err;
}

uint32_t stacks_find(const struct stacks *t, uint64_t stack_id)
{
	uint32_t i = intern_find(&t->table, &stack_id);

	return i == INTERN_NONE ? PROFILE_NONE : ((const struct stack *)intern_item(&t->table, i))->index;
}

void stacks_remove(struct stacks *t, uint64_t stack_id)
{
	uint32_t i = intern_find(&t->table, &stack_id);

	if (i != INTERN_NONE)
		intern_remove(&t->table, i);
}

uint64_t stacks_count(const struct stacks *t)
{
	return t->count;
}
