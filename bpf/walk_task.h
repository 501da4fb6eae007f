/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which asyncio task the thread runs, and where its coroutine is. */
#ifndef PYBPF_WALK_TASK_H
#define PYBPF_WALK_TASK_H

#include "walk_context.h"

/* How the task of a thread of Python 3.7 to 3.13 is found, who includes this says: 0, or its address. */
#ifndef WALK_CURRENT_TASK
#define WALK_CURRENT_TASK(w, tstate) 0ULL
#endif

/*
 * Greatest distance from a coroutine to the frame inside it (3.11+), and less than from there to the coroutine's end:
 * PyCoroObject.cr_iframe is at 72 in 3.14 and 3.15, at 88 in free-threaded builds, and a frame has 80 bytes and more.
 * To 3.10 a frame is an object of its own, which is larger.
 */
#define WALK_INSIDE_CORO 128

/* The walk begins with a thread state, which is in the buffer: its task is to be found before the next step. */
static __always_inline void walk_expect_task(struct walk *w, const struct pybpf_layout *l)
{
	/* It stands before the top of the data stack, or is not in the buffer. */
	w->contexts = l->tstate_datastack_top ? walk_u64(w, l->tstate_contexts) : 0;
	w->task = 0;
	w->task_frame = 0;
	w->stack.task_depth = 0;
	w->task_due = w->asyncio.current_tasks || w->asyncio.running_task;
}

/* Finds the task that the event loop of the thread runs; called between two steps where task_due is set. */
static __always_inline void walk_find_task(struct walk *w, const struct pybpf_layout *l)
{
	w->task_due = 0;
	if (w->asyncio.current_tasks) {
		if (!l->tstate_datastack_top)
			walk_read(w, &w->contexts, sizeof(w->contexts), w->tstate + l->tstate_contexts);
		w->task = WALK_CURRENT_TASK(w, w->tstate);
	} else {
		walk_read(w, &w->task, sizeof(w->task), w->tstate + w->asyncio.running_task);
	}
	if (!w->task || walk_read(w, &w->task_frame, sizeof(w->task_frame), w->task + w->asyncio.task_coro))
		return;
	/* To 3.10 a coroutine's first field, after its type, is its frame (PyCoroObject.cr_frame), which is elsewhere.
	 */
	if (l->has_frame_objects && w->task_frame)
		walk_read(w, &w->task_frame, sizeof(w->task_frame), w->task_frame + l->code_type + 8);
}

#endif
