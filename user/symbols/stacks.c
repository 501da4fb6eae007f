// SPDX-License-Identifier: Apache-2.0
/* The stacks of the kernel's records by their ids, and those whose names are not known yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/stacks_internal.h"

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

struct stacks *stacks_new(struct pysym *pysym, struct profile *profile)
{
	struct stacks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pysym = pysym;
	t->profile = profile;
	intern_init(&t->table, sizeof(struct stacks_stack), sizeof(uint64_t));
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

int stacks_add_tasks(struct stacks *t, const struct pybpf_task_event *event, size_t size)
{
	return tasks_add(&t->tasks, event, size, t->profile);
}

/* Returns the bytes of frames and addresses behind the event's header. */
static size_t bytes_behind(const struct pybpf_stack_event *event)
{
	return pybpf_kept_frames(event->depth) * sizeof(struct pybpf_frame) +
	       (event->nr_kernel + (size_t)event->nr_native) * sizeof(uint64_t);
}

static int keep(struct stacks *t, const struct stacks_stack *made)
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
	struct stacks_stack made = {0};
	int err;

	if (size < sizeof(*event) || event->nr_kernel > PYBPF_KERNEL_FRAMES || event->nr_native > PYBPF_NATIVE_FRAMES ||
	    size < sizeof(*event) + bytes_behind(event))
		return -EBADMSG;
	if (!pysym_has_process(t->pysym, event->proc_id))
		return -ENOENT;
	made.id = event->stack_id;
	err = stacks_build(t, event, false, &made);
	if (err == -ENOENT)
		return defer(t, event, size);
	return err ? err : keep(t, &made);
}

/* Builds the first of the stacks that wait, which then waits no more. Returns as stacks_build(). */
static int finish_first(struct stacks *t, struct waiting *w, bool last)
{
	const struct pybpf_stack_event *event = &w->stacks->event;
	struct stacks_stack made = {.id = event->stack_id};
	int err = stacks_build(t, event, last, &made);

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

	return i == INTERN_NONE ? PROFILE_NONE : ((const struct stacks_stack *)intern_item(&t->table, i))->index;
}

enum pybpf_native_end stacks_find_native(const struct stacks *t, uint64_t stack_id, enum native_join *join)
{
	uint32_t i = intern_find(&t->table, &stack_id);
	const struct stacks_stack *found;

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

static const struct stacks_stack *stack_of(const struct stacks *t, const void *id)
{
	uint32_t i = intern_find(&t->table, id);

	return i == INTERN_NONE ? NULL : intern_item(&t->table, i);
}

/* Adds the copies of the stacks to the table. copied: by stack of the other profile. Returns 0 or -ENOMEM. */
static int add_copies(struct stacks *t, const struct stacks *from, const struct intern *ids, const uint32_t *copied)
{
	bool fresh;

	for (uint32_t i = 0; i < ids->count; i++) {
		const struct stacks_stack *stack = stack_of(from, intern_item(ids, i));
		struct stacks_stack copy;

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
		const struct stacks_stack *stack = stack_of(from, intern_item(ids, i));

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
