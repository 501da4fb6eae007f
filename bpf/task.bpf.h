/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The asyncio task that a thread runs, and the tasks that await it, by name. All of it is read at the sample: the
 * thread is interrupted and its event loop runs this task, so that none of them ends or is renamed meanwhile, while
 * later another task may be at its address.
 */
#ifndef PYBPF_TASK_BPF_H
#define PYBPF_TASK_BPF_H

#include "announce.bpf.h"
#include "awaiter.bpf.h"

/* Longest name that is taken as one, in bytes. */
#define TASK_NAME_MAX (1 << 20)

/* Takes a name that asyncio gave and that nobody asked for: it is still a number. */
static __always_inline void take_number(struct pybpf_task_name *out, __u64 digits, __u64 tag)
{
	__u64 low = (__u32)digits, high = tag >> PYBPF_LONG_COUNT_SHIFT > 1 ? digits >> 32 : 0,
	      number = low | high << PYBPF_DIGIT_BITS;

	if (tag & PYBPF_LONG_SIGN || tag >> PYBPF_LONG_COUNT_SHIFT > 2)
		return;
	out->form = PYBPF_TASK_NUMBER;
	out->size = sizeof(number);
	*(__u64 *)out->text = number;
}

static __always_inline void take_text(struct walk *w, const struct pybpf_layout *l, __u64 string,
				      struct pybpf_task_name *out)
{
	__u32 state = walk_u32(w, l->str_state) >> l->str_kind_shift, kind = state & 7; /* kind:3, compact:1, ascii:1 */
	__u64 size = walk_u64(w, l->str_length), data = state & 16 ? l->str_ascii_data : l->str_compact_data;
	__u64 kept;

	if (!(state & 8) || (kind != 1 && kind != 2 && kind != 4) || size > TASK_NAME_MAX)
		return;
	size *= kind;
	kept = size;
	if (kept > PYBPF_TASK_TEXT)
		kept = PYBPF_TASK_TEXT;
	/* Else compilers check a copy of it, and the verifier (5.10 to 6.1) knows no bound. */
	barrier_var(kept);
	if (compat_read_user(out->text, kept & (2 * PYBPF_TASK_TEXT - 1), string + data)) {
		__builtin_memset(out->text, 0, sizeof(out->text));
		return;
	}
	out->size = (__u32)size;
	out->form = kind == 4    ? PYBPF_TASK_UCS4
		    : kind == 2  ? PYBPF_TASK_UCS2
		    : state & 16 ? PYBPF_TASK_ASCII
				 : PYBPF_TASK_LATIN1;
}

static __always_inline void take_name(struct walk *w, const struct pybpf_layout *l, __u64 name,
				      struct pybpf_task_name *out)
{
	__u64 flags;

	__builtin_memset(out, 0, sizeof(*out));
	if (!name || walk_read(w, w->buffer, STRING_HEADER, name))
		return;
	flags = read_u64(walk_u64(w, l->code_type) + head_size(l) + PYBPF_TYPE_FLAGS);
	if (flags & PYBPF_TPFLAGS_UNICODE_SUBCLASS)
		take_text(w, l, name, out);
	else if (flags & PYBPF_TPFLAGS_LONG_SUBCLASS)
		take_number(out, walk_u64(w, head_size(l) + PYBPF_LONG_DIGITS),
			    walk_u64(w, head_size(l) + PYBPF_LONG_TAG));
}

/*
 * Returns the address of the object that names a task. Those of 3.7 have no names: they are named after their coroutine
 * (PyCoroObject.cr_qualname).
 */
static __always_inline __u64 name_of(const struct walk *w, const struct pybpf_layout *l, __u64 task)
{
	if (w->asyncio.task_name)
		return read_u64(task + w->asyncio.task_name);
	return read_u64(read_u64(task + w->asyncio.task_coro) + head_size(l) + PYBPF_CORO_QUALNAME);
}

static __always_inline __u64 mix_name(__u64 hash, const struct pybpf_task_name *name)
{
	const __u64 *text = (const __u64 *)name->text;

	hash = walk_mix(hash, (__u64)name->form << 32 | name->size);
	for (__u32 i = 0; i < PYBPF_TASK_TEXT / sizeof(*text); i++)
		hash = walk_mix(hash, text[i]);
	return hash;
}

/*
 * Keeps the name of s->next_task, if that is a task, and goes on to what awaits it. Returns 1 at the end of the chain.
 * A global function (kernel 5.6), so that the verifier checks it once.
 */
__noinline int take_task(__u32 context)
{
	struct scratch *s = scratch_get((enum pybpf_context)context);
	const struct pybpf_layout *l = s ? layout_get(s->layout) : NULL;
	enum task_type type;
	__u64 object;
	__u8 is_set = 1;
	__u32 i;

	if (!s || !l || !s->next_task)
		return 1;
	object = s->next_task;
	s->next_task = 0;
	i = s->tasks.count;
	if (i >= PYBPF_TASKS) {
		s->tasks.flags |= PYBPF_TASKS_MORE;
		return 1;
	}
	type = type_of(l, object);
	if (type != TASK_TYPE_FUTURE) {
		struct pybpf_task_name *out = &s->tasks.tasks[i & (PYBPF_TASKS - 1)];

		take_name(&s->walk, l, type == TASK_TYPE_TASK ? name_of(&s->walk, l, object) : 0, out);
		s->walk.stack.task_id = mix_name(s->walk.stack.task_id, out);
		s->tasks.count = i + 1;
	}
	if (type == TASK_TYPE_OTHER)
		return 1;
	if (!s->walk.asyncio.awaited_by) {
		s->next_task = object;
		return find_awaiter(context);
	}
	s->next_task = read_u64(object + s->walk.asyncio.awaited_by);
	if (!s->next_task)
		return 1;
	if (!compat_read_user(&is_set, sizeof(is_set), object + s->walk.asyncio.awaited_by_is_set) && !is_set)
		return 0;
	s->tasks.flags |= PYBPF_TASKS_SEVERAL;
	return 1;
}

/* Reads the tasks of the finished walk into s->tasks, and gives them their number. */
static __always_inline void take_tasks(struct scratch *s, enum pybpf_context context)
{
	struct pybpf_stack_event *stack = &s->walk.stack;
	int i;

	stack->task_id = 0;
	if (stack->task_depth > stack->depth)
		stack->task_depth = 0;
	if (!s->walk.task)
		return;
	s->next_task = s->walk.task;
	s->tasks.count = 0;
	s->tasks.flags = 0;
	for (i = 0; i < PYBPF_TASK_STEPS; i++) {
		if (take_task(context))
			break;
	}
	if (i == PYBPF_TASK_STEPS)
		s->tasks.flags |= PYBPF_TASKS_MORE;
	stack->task_id = walk_mix(walk_mix(stack->task_id, s->tasks.count), s->tasks.flags) | 1;
	s->tasks.task_id = stack->task_id;
}

#endif
