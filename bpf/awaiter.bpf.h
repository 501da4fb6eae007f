/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What an object of asyncio is, and what awaits it in Python 3.7 to 3.13, where a future does not point to that: one of
 * its callbacks does, which wakes the task that awaits it or is gather()'s.
 */
#ifndef PYBPF_AWAITER_BPF_H
#define PYBPF_AWAITER_BPF_H

#include "maps.bpf.h"

enum task_type {
	TASK_TYPE_OTHER, /* a task that is written in Python, for one */
	TASK_TYPE_FUTURE,
	TASK_TYPE_TASK,
};

/* Returns what the object is: its type, or a base of that, is named _asyncio.Task or _asyncio.Future. */
static __always_inline enum task_type type_of(const struct pybpf_layout *l, __u64 object)
{
	__u64 type = read_u64(object + l->code_type);

	for (int i = 0; i < PYBPF_TASK_BASES && type; i++) {
		__u64 name[2] = {};

		type += head_size(l);
		if (!compat_read_user(name, sizeof(name), read_u64(type + PYBPF_TYPE_NAME)) &&
		    name[0] == EIGHT('_', 'a', 's', 'y', 'n', 'c', 'i', 'o')) {
			if (name[1] == EIGHT('.', 'F', 'u', 't', 'u', 'r', 'e', 0))
				return TASK_TYPE_FUTURE;
			if (name[1] << 16 == EIGHT(0, 0, '.', 'T', 'a', 's', 'k', 0))
				return TASK_TYPE_TASK;
		}
		type = read_u64(type + PYBPF_TYPE_BASE);
	}
	return TASK_TYPE_OTHER;
}

/* Returns the task that this callback of an object wakes, if it is one that awaits it; else 0. */
static __always_inline __u64 woken_task(const struct walk *w, const struct pybpf_layout *l, __u64 callback,
					__u64 object)
{
	__u64 task = read_u64(callback + head_size(l) + l->wakeup_task);

	if (!task || read_u64(task + w->asyncio.task_coro - PYBPF_WAITER_BEFORE_CORO) != object)
		return 0;
	return type_of(l, task) == TASK_TYPE_TASK ? task : 0;
}

/* Returns whether this callback is the function that gather() makes (in 3.9 _gather()), by its qualified name. */
static __always_inline int is_of_gather(const struct pybpf_layout *l, __u64 callback)
{
	__u64 name = read_u64(callback + head_size(l) + l->function_qualname) + l->str_ascii_data, text[4] = {};

	name += (read_u64(name) & 0xff) == '_';
	return !compat_read_user(text, sizeof(text), name) &&
	       text[0] == EIGHT('g', 'a', 't', 'h', 'e', 'r', '.', '<') &&
	       text[1] == EIGHT('l', 'o', 'c', 'a', 'l', 's', '>', '.') &&
	       text[2] == EIGHT('_', 'd', 'o', 'n', 'e', '_', 'c', 'a') &&
	       text[3] << 8 == EIGHT(0, 'l', 'l', 'b', 'a', 'c', 'k', 0);
}

/* Returns the future of the gather() that this callback is of, or 0: a variable of the callback's outer function. */
static __always_inline __u64 gathering_future(const struct pybpf_layout *l, __u64 callback)
{
	__u32 head = head_size(l);
	__u64 cells = read_u64(callback + head + l->function_closure), count = read_u64(cells + head + PYBPF_VAR_SIZE),
	      future = 0;

	if (count > PYBPF_GATHER_CELLS || !is_of_gather(l, callback))
		return 0;
	/* The first field of a PyCellObject is ob_ref. */
	for (__u32 i = 0; i < PYBPF_GATHER_CELLS; i++) {
		__u64 name[3] = {}, object;

		if (i >= count)
			break;
		object = read_u64(read_u64(cells + head + l->tuple_items + 8 * i) + head);
		if (!compat_read_user(name, sizeof(name),
				      read_u64(read_u64(object + l->code_type) + head + PYBPF_TYPE_NAME)) &&
		    name[0] == EIGHT('_', 'G', 'a', 't', 'h', 'e', 'r', 'i') &&
		    name[1] == EIGHT('n', 'g', 'F', 'u', 't', 'u', 'r', 'e') && !(name[2] & 0xff)) {
			future = object;
			break;
		}
	}
	return future && type_of(l, future) == TASK_TYPE_FUTURE ? future : 0;
}

/*
 * Replaces s->next_task, a task or a future, by what awaits it. Returns 0; 1 if that is not known. With several
 * callbacks it is not told: each may be of one that awaits it. A global function (kernel 5.6), so that the verifier
 * checks it once.
 */
__noinline int find_awaiter(__u32 context)
{
	struct scratch *s = scratch_get((enum pybpf_context)context);
	const struct pybpf_layout *l = s ? layout_get(s->layout) : NULL;
	__u64 object, callback;

	if (!s || !l)
		return 1;
	object = s->next_task;
	callback = read_u64(object + head_size(l) + PYBPF_FUTURE_CALLBACK0);
	s->next_task = 0;
	if (!callback || read_u64(object + head_size(l) + PYBPF_FUTURE_CALLBACKS))
		return 1;
	s->next_task = woken_task(&s->walk, l, callback, object);
	if (!s->next_task)
		s->next_task = gathering_future(l, callback);
	return !s->next_task;
}

#endif
