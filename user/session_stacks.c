// SPDX-License-Identifier: Apache-2.0
#include "session_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct stack {
	uint64_t id;
	uint32_t index; /* in the profile */
	UT_hash_handle hh;
};

/* A stack with a code object that was not known when it came: on another CPU its announcement was on the way. */
struct deferred {
	struct deferred *next;
	size_t size;
	struct pybpf_stack_event event; /* followed by its frames */
};

struct session_stacks {
	struct pysym *pysym;
	struct profile *profile;
	struct stack *table;
	struct deferred *deferred;
};

struct session_stacks *session_stacks_new(struct pysym *pysym, struct profile *profile)
{
	struct session_stacks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pysym = pysym;
	t->profile = profile;
	return t;
}

void session_stacks_free(struct session_stacks *t)
{
	struct stack *stack, *next;

	if (!t)
		return;
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_ITER (hh, t->table, stack, next) {
		HASH_DEL(t->table, stack);
		free(stack);
	}
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
	while (t->deferred) {
		struct deferred *d = t->deferred;

		t->deferred = d->next;
		free(d);
	}
	free(t);
}

static uint32_t kept_frames(const struct pybpf_stack_event *event)
{
	return event->depth > PYBPF_MAX_FRAMES ? PYBPF_MAX_FRAMES : event->depth;
}

/* The i-th kept frame from the leaf on: a cut stack's root half is a ring that begins after the last one pushed. */
static uint32_t frame_slot(const struct pybpf_stack_event *event, uint32_t i)
{
	if (event->depth <= PYBPF_MAX_FRAMES || i < PYBPF_HALF_FRAMES)
		return i;
	return PYBPF_HALF_FRAMES +
	       ((event->depth - PYBPF_HALF_FRAMES + (i - PYBPF_HALF_FRAMES)) & (PYBPF_HALF_FRAMES - 1));
}

static uint32_t push_note(struct session_stacks *t, uint32_t stack, const char *text)
{
	uint32_t frame = profile_add_frame(t->profile, PROFILE_NOTE, text, "", PROFILE_NO_LINE);

	return frame == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(t->profile, stack, frame);
}

/* Puts a frame on top of *stack. Returns 0, -ENOENT when its code object is not known, -ENOMEM. */
static int push_frame(struct session_stacks *t, uint32_t proc_id, const struct pybpf_frame *frame, uint32_t *stack)
{
	struct pysym_frame named;
	int err = pysym_resolve(t->pysym, proc_id, frame, &named);

	if (err)
		return err;
	if (named.hidden)
		return 0;
	if (*named.cookie == PROFILE_NONE)
		*named.cookie = profile_add_frame(t->profile, PROFILE_PYTHON, named.name, named.file, named.line);
	if (*named.cookie == PROFILE_NONE)
		return -ENOMEM;
	*stack = profile_add_stack(t->profile, *stack, *named.cookie);
	return *stack == PROFILE_NONE ? -ENOMEM : 0;
}

/* Builds the profile's stack, root first. last: nothing more will be known, what has no name gets a note. */
static int build(struct session_stacks *t, const struct pybpf_stack_event *event, bool last, uint32_t *out)
{
	const struct pybpf_frame *frames = (const void *)(event + 1);
	uint32_t stack = PROFILE_ROOT, kept = kept_frames(event);
	char note[64];

	if (event->flags & PYBPF_STACK_NO_ROOT)
		stack = push_note(t, stack, "[root not reached]");
	else if (event->flags & (PYBPF_STACK_FAULT | PYBPF_STACK_CYCLE))
		stack = push_note(t, stack, "[incomplete]");
	for (uint32_t i = kept; i-- > 0 && stack != PROFILE_NONE;) {
		int err = push_frame(t, event->proc_id, &frames[frame_slot(event, i)], &stack);

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
	/* There were only frames that do not show. */
	if (stack == PROFILE_ROOT)
		stack = push_note(t, stack, "[incomplete]");
	*out = stack;
	return stack == PROFILE_NONE ? -ENOMEM : 0;
}

static int keep(struct session_stacks *t, uint64_t id, uint32_t index)
{
	struct stack *stack;

	HASH_FIND(hh, t->table, &id, sizeof(id), stack);
	if (stack)
		return 0;
	stack = calloc(1, sizeof(*stack));
	if (!stack)
		return -ENOMEM;
	stack->id = id;
	stack->index = index;
	HASH_ADD(hh, t->table, id, sizeof(id), stack);
	return 0;
}

static int defer(struct session_stacks *t, const struct pybpf_stack_event *event, size_t size)
{
	struct deferred *d = malloc(offsetof(struct deferred, event) + size);

	if (!d)
		return -ENOMEM;
	d->size = size;
	memcpy(&d->event, event, size);
	d->next = t->deferred;
	t->deferred = d;
	return 0;
}

int session_stacks_add(struct session_stacks *t, const struct pybpf_stack_event *event, size_t size)
{
	uint32_t index;
	int err;

	if (size < sizeof(*event) || size < sizeof(*event) + kept_frames(event) * sizeof(struct pybpf_frame))
		return -EBADMSG;
	err = build(t, event, false, &index);
	if (err == -ENOENT)
		return defer(t, event, size);
	return err ? err : keep(t, event->stack_id, index);
}

int session_stacks_finish(struct session_stacks *t)
{
	while (t->deferred) {
		struct deferred *d = t->deferred;
		uint32_t index;
		int err = build(t, &d->event, true, &index);

		if (!err)
			err = keep(t, d->event.stack_id, index);
		if (err)
			return err;
		t->deferred = d->next;
		free(d);
	}
	return 0;
}

uint32_t session_stacks_find(const struct session_stacks *t, uint64_t stack_id)
{
	struct stack *stack;

	HASH_FIND(hh, t->table, &stack_id, sizeof(stack_id), stack);
	return stack ? stack->index : PROFILE_NONE;
}

uint64_t session_stacks_count(const struct session_stacks *t)
{
	return HASH_COUNT(t->table);
}
