/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is sent of a wait: its cause, the stack of the thread that leaves its CPU, and that of the GIL's holder. */
#ifndef PYBPF_WAIT_STACK_BPF_H
#define PYBPF_WAIT_STACK_BPF_H

#include "announce.bpf.h"
#include "count.h"
#include "kernel_stack.bpf.h"
#include "loop.bpf.h"
#include "outcome.bpf.h"
#include "runtimes.bpf.h"
#include "wait_cause.bpf.h"
#include "wait_gil.bpf.h"
#include "wait_time.bpf.h"

/*
 * Sends what a thread waits for, event->wait, unless it was sent already; the rest of *event is all zero. Returns its
 * id; that of the state alone without room.
 */
static __always_inline __u64 announce(struct pybpf_wait_event *event)
{
	__u8 mark = 1;
	long err;

	event->event.type = PYBPF_EVENT_WAIT;
	event->event.size = sizeof(*event);
	event->wait_id = wait_id_of(&event->wait);
	if (bpf_map_lookup_elem(&waits, &event->wait_id))
		return event->wait_id;
	err = bpf_map_update_elem(&waits, &event->wait_id, &mark, BPF_NOEXIST);
	if (err == -EEXIST)
		return event->wait_id;
	if (err) {
		__sync_fetch_and_add(&waits_unnamed, 1);
		return PYBPF_WAIT_ID(event->wait.state);
	}
	if (!send(event, sizeof(*event)))
		return event->wait_id;
	bpf_map_delete_elem(&waits, &event->wait_id);
	return PYBPF_WAIT_ID(event->wait.state);
}

static __always_inline __u64 announce_wait(const struct pybpf_wait *wait)
{
	struct pybpf_wait_event event = {.wait = *wait};

	return announce(&event);
}

/* Returns the id of the wait of a thread that is ready to run: for others, or until its control group has its share. */
static __noinline __u64 ready_id(struct task_struct *task)
{
	struct pybpf_wait wait = {.state = PYBPF_STATE_THROTTLED};

	if (!compat_is_throttled(task))
		return PYBPF_WAIT_ID(PYBPF_STATE_QUEUED);
	if (!cfg_wait_detail)
		return PYBPF_WAIT_ID(PYBPF_STATE_THROTTLED);
	wait.number = compat_quota(task);
	return announce_wait(&wait);
}

/*
 * Sends the walked stack, which has its number, unless it was sent already. Returns its number; PYBPF_STACK_ID_REFUSED
 * when it would be new and there is no memory for it.
 */
static __noinline __u64 announce_stack(struct loop_context *c)
{
	__u64 *id = &c->s->walk.stack.stack_id;
	__u8 mark = 1;
	void *sent;

	number_stack(c->s);
	c->s->sets = sets_now();
	sent = stacks_of(c->s->sets);
	if (!sent || bpf_map_lookup_elem(sent, id))
		return *id;
	if (!takes_new_stacks())
		return PYBPF_STACK_ID_REFUSED;
	if (bpf_map_update_elem(sent, id, &mark, BPF_NOEXIST))
		return *id;
	bpf_loop(frames_kept(c->s), loop_codes, c, 0);
	if (c->full || send_stack(c->s))
		stack_unsent(c->s->sets, *id);
	return *id;
}

/*
 * Begins the walk of a thread state of another thread, which may run meanwhile. Returns whether it has begun. A global
 * function, as the next: the verifier checks it once.
 */
__noinline int begin_other(struct scratch *s, const struct pybpf_layout *l, __u64 tstate)
{
	struct walk_states known = {.tstate = {tstate}, .count = 1};
	struct walk *w;

	if (!s || !l)
		return 0;
	w = &s->walk;
	w->thread_id = w->thread_last = thread_of(l, tstate);
	w->nr_candidates = 0;
	w->stack_pointer = 0;
	s->nr_kernel = 0;
	native_forget(s, PYBPF_CONTEXT_SWITCH);
	/* Its tasks may end while they are read. */
	w->asyncio = (struct pybpf_asyncio){0};
	w->stack.task_id = 0;
	if (l->tstate_status && l->tstate_datastack_top)
		compat_read_user(&known.id, sizeof(known.id), tstate + l->tstate_datastack_top - 16);
	walk_start(w, l, l->tstate_status ? 0 : tstate, &known);
	return w->thread_id && w->remembered;
}

/*
 * Returns the number of the stack of begin_other's walk, or 0 when what was read may be of several moments: only a
 * chain that leads to its root at the first attempt is taken.
 */
__noinline __u64 number_other(struct scratch *s)
{
	const struct walk *w;

	if (!s)
		return 0;
	w = &s->walk;
	if (w->result != WALK_OK || w->attempt != WALK_FIRST || w->unproved || w->stack.flags || !w->stack.depth)
		return 0;
	number_stack(s);
	return w->stack.stack_id;
}

static long loop_other(__u32 i, struct loop_context *c)
{
	return is_set(loop_step(c->s, c->l));
}

/* A holder that changes frames all the time can be met in the middle of a change each time. */
#define HOLDER_LOOKS 8

struct holder_search {
	struct loop_context c;
	__u64 own_tstate;
};

/* Reads who holds the GIL before the holder is walked. Returns whether it is another thread. */
static __noinline int see_holder(struct holder_search *search)
{
	struct gil_owner before = {.locked = 1};
	struct leaving *leaving = &search->c.s->leaving;

	if (!read_gil_owner(&search->c.s->walk, search->c.l, leaving->gil, &before) ||
	    before.last_holder == search->own_tstate) {
		leaving->holder_stack_id = before.locked ? PYBPF_HOLDER_UNKNOWN : PYBPF_HOLDER_NONE;
		return 0;
	}
	if (before.switch_number != leaving->seen.switch_number || before.last_holder != leaving->seen.last_holder)
		leaving->seen_stack_id = 0;
	leaving->seen = before;
	return 1;
}

/* Returns whether the walk has led to a stack of the thread that held the GIL all the time. */
static __noinline int check_holder(struct holder_search *search)
{
	struct leaving *leaving = &search->c.s->leaving;
	__u64 id = number_other(search->c.s), last;
	struct gil_owner after;

	if (!id || !read_gil_owner(&search->c.s->walk, search->c.l, leaving->gil, &after) ||
	    after.last_holder != leaving->seen.last_holder || after.switch_number != leaving->seen.switch_number)
		return 0;
	last = leaving->seen_stack_id;
	leaving->seen_stack_id = id;
	if (!walk_has_entries(search->c.l) && id != last)
		return 0;
	leaving->holder_stack_id = id;
	return 1;
}

/*
 * Looks once at the thread that holds the GIL, from outside while it may run: it must hold the GIL before and after,
 * without having let go. A chain of frame objects (to 3.10), which are freed one by one, must be the same twice.
 */
static long loop_find_holder(__u32 i, void *data)
{
	struct holder_search *search = data;
	struct loop_context *c = &search->c;

	if (!c->l || !c->s || !see_holder(search))
		return 1;
	if (!begin_other(c->s, c->l, c->s->leaving.seen.last_holder) ||
	    bpf_loop(WALK_STEPS, loop_other, c, 0) == WALK_STEPS)
		return 0;
	return check_holder(search);
}

/* Finds the number of the stack of the thread that holds the GIL, which is announced, or an enum pybpf_holder. */
static __always_inline void find_holder(struct loop_context *c)
{
	struct holder_search search = {.c = *c, .own_tstate = walk_innermost_tstate(&c->s->walk)};

	if (c->s->nr_runtimes > 1)
		return;
	c->s->leaving.seen_stack_id = 0;
	bpf_loop(HOLDER_LOOKS, loop_find_holder, &search, 0);
	if (c->s->leaving.holder_stack_id >= PYBPF_HOLDERS)
		announce_stack(c);
}

/*
 * Begins the walk of the current thread, which is about to leave its CPU. Returns 0, or the enum pybpf_stack_id that
 * says why there is nothing to walk. ctx: the program's, to take the stack in the kernel; NULL: not wanted.
 */
static __noinline __u64 begin_leaving(struct loop_context *c, const struct pybpf_proc *proc, struct task_struct *task,
				      __u32 tid, void *ctx)
{
	if (proc->state == PYBPF_PROC_READY && !compat_current_mm(task))
		return PYBPF_STACK_ID_NO_INTERPRETER; /* the thread is ending */
	if (proc->state != PYBPF_PROC_READY || proc->mm != compat_current_mm(task))
		return PYBPF_STACK_ID_UNDECIDED;
	if (compat_is_kernel_worker(task))
		return PYBPF_STACK_ID_NO_THREAD;
	c->l = layout_get(proc->runtimes[0].layout);
	if (!c->s || !c->l)
		return PYBPF_STACK_ID_UNREADABLE;
	prepare_walk(c->s, proc, task, tid);
	if (ctx)
		take_kernel(c->s, ctx, PYBPF_CONTEXT_SWITCH);
	else
		c->s->nr_kernel = 0;
	c->s->nr_registers = compat_entry_registers(c->s->walk.candidates, &c->s->walk.stack_pointer);
	if (ctx)
		native_take(c->s, PYBPF_CONTEXT_SWITCH, NULL);
	else
		native_forget(c->s, PYBPF_CONTEXT_SWITCH);
	if (!walk_begin(c->s, proc, task, c->l))
		return PYBPF_STACK_ID_NO_THREAD;
	return 0;
}

/*
 * Walks on to the end. Returns the id of the stack, or an enum pybpf_stack_id. begun: what begin_leaving has returned.
 */
static __always_inline __u64 walk_leaving(struct loop_context *c, __u64 begun)
{
	c->s->leaving.gil = 0;
	if (begun || !c->l)
		return begun;
	loop_to_end(c);
	c->s->leaving.gil = walk_find_gil(&c->s->walk, c->l);
	return find_no_stack(c->s) ?: announce_stack(c);
}

#endif
