/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The time of every thread of the wanted processes, without a gap: at each switch the state of the thread that leaves
 * its CPU ends, and so does that of the thread that comes. A wait belongs to the stack with which the thread went to
 * sleep. Time on a CPU is only added up: samples say where it goes.
 *
 * These programs write to maps of the sampler, which therefore must not be an NMI (see the table in compat.bpf.h): with
 * them, user space samples by the CPU clock, whose interrupt cannot come in their middle.
 */
#ifndef PYBPF_WAIT_BPF_H
#define PYBPF_WAIT_BPF_H

#include "callback.bpf.h"
#include "filter.bpf.h"
#include "wait_cause.bpf.h"
#include "wait_stack.bpf.h"
#include "wait_time.bpf.h"

/* A thread that leaves its CPU. It is on the stack of the program, whose functions are called one after the other. */
struct leave {
	struct loop_context c;
	const struct pybpf_proc *proc;
	struct pybpf_thread *thread;
	__u64 now;
};

/* Finds what the thread needs, and its entry, if it has one. Returns 0 if its time is not wanted. */
static __noinline int leave_find(struct task_struct *task, struct leave *leave)
{
	__u32 tgid = compat_task_tgid(task), pid = task->pid;

	leave->c.s = scratch_get(PYBPF_CONTEXT_SWITCH);
	leave->proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!leave->c.s || !time_is_wanted(leave->proc) || !filter_passes())
		return 0;
	leave->thread = bpf_map_lookup_elem(&threads, &pid);
	return 1;
}

/* Makes the thread's entry. Returns 0 without room for one, and for a thread that ends. */
static __noinline int leave_new(struct task_struct *task, __u64 now, struct leave *leave)
{
	struct pybpf_thread fresh = {.state = PYBPF_STATE_RUNNING};

	if (!leave->proc || task->flags & PF_EXITING)
		return 0;
	init_thread(&fresh, task, leave->proc->proc_id, now);
	leave->thread = add_thread(task->pid, &fresh);
	return leave->thread != NULL;
}

/* Ends the time of a thread until now: it ends, or goes on as another program. */
static __noinline int end_thread(struct pybpf_thread *thread, const struct task_struct *task, __u32 pid, __u64 now)
{
	struct pybpf_wait_key key;

	now = not_before(thread, now);
	thread->running_ns += run_until(thread, task, pid, now);
	add_gil_sleeps(thread);
	init_key(&key, thread, 0, PYBPF_WAIT_ID(PYBPF_STATE_RUNNING));
	add_time(&key, 0, thread->running_ns, 0);
	thread->running_ns = 0;
	thread->gil_running_ns = 0;
	thread->begin_ns = now;
	thread->since_ns = now;
	return 0;
}

/* The thread has ended, or its time is wanted no more. */
static __noinline int forget_thread(const struct pybpf_thread *thread, __u32 pid)
{
	name_thread(&thread->id);
	bpf_map_delete_elem(&threads, &pid);
	return 0;
}

/*
 * The thread's time is wanted no more: another program was executed, of which this is not asked, or another user or
 * control group is its own.
 */
static __noinline int leave_forget(struct task_struct *task, __u64 now, bool same_program)
{
	__u32 pid = task->pid;
	struct pybpf_thread *thread = bpf_map_lookup_elem(&threads, &pid);

	if (!thread)
		return 0;
	end_thread(thread, task, pid, same_program ? now : thread->since_ns);
	forget_thread(thread, pid);
	return 0;
}

/* Adds the time for which the thread has run. */
static __noinline int leave_begin(struct task_struct *task, __u64 now, struct leave *leave)
{
	const struct pybpf_proc *proc = leave->proc;
	struct pybpf_thread *thread = leave->thread;

	if (!proc || !thread)
		return 0;
	/* An exec has begun another program. */
	thread->id.proc_id = proc->proc_id;
	/* User space reads the names of threads that live to the end; an exec gives its thread another one. */
	if (!thread->running_ns)
		name_thread(&thread->id);
	leave->now = not_before(thread, now);
	thread->running_ns += run_until(thread, task, task->pid, leave->now);
	thread->exec_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	return 1;
}

/* Notes whether the walked thread has the GIL. */
static __noinline int leave_gil(struct loop_context *c)
{
	struct leaving *leaving = &c->s->leaving;
	struct gil_owner owner = {};

	leaving->with_gil = 0;
	leaving->holder_stack_id = PYBPF_HOLDER_UNKNOWN;
	if (cfg_gil_waits && leaving->gil && c->l && read_gil_owner(&c->s->walk, c->l, leaving->gil, &owner) &&
	    owner.last_holder == walk_innermost_tstate(&c->s->walk))
		leaving->with_gil = PYBPF_WAIT_WITH_GIL;
	leaving->owner = owner;
	return 0;
}

/* Describes what the current thread waits for, by its system call. A global function: the verifier checks it once. */
__noinline int leave_describe(__u32 state)
{
	struct scratch *s = scratch_get(PYBPF_CONTEXT_SWITCH);
	struct waiting thread = {.task = compat_task(), .current = true};
	struct pybpf_wait wait = {};

	if (!s)
		return 0;
	describe_wait(&wait, &thread, state);
	s->leaving.wait = wait;
	s->leaving.futex = thread.futex;
	return 0;
}

/* Notes what the current thread waits for. state: in which it leaves its CPU. */
static __noinline int leave_wait(struct loop_context *c, __u32 state)
{
	struct leaving *leaving = &c->s->leaving;

	leave_describe(state);
	leaving->use = c->l ? find_gil_futex(&c->s->walk, c->l, leaving->gil, leaving->futex) : GIL_FUTEX_NONE;
	if (!leaving->use)
		return 0;
	if (!cfg_gil_waits && leaving->use == GIL_FUTEX_TAKE) {
		struct gil_owner owner = {};

		read_gil_owner(&c->s->walk, c->l, leaving->gil, &owner);
		leaving->owner = owner;
	}
	leaving->wait.state = PYBPF_STATE_GIL;
	leaving->wait.flags = leaving->use == GIL_FUTEX_HAND_OVER ? PYBPF_WAIT_HAND_OVER : 0;
	/* The GIL's own mutex is taken with the GIL held, too (drop_gil()). */
	leaving->with_gil = 0;
	return 0;
}

/* The thread sleeps from now on. */
static __noinline int leave_asleep(struct pybpf_thread *thread, struct leaving *leaving)
{
	bool goes_on = gil_wait_goes_on(thread, leaving);

	/* A holder of the GIL for a shorter time than is wanted is not reported. */
	if (!goes_on ||
	    (leaving->holder_stack_id != thread->holder_stack_id && thread->gil_waited_ns >= cfg_min_block_ns))
		add_gil_sleeps(thread);
	gil_wait_begins(thread, leaving, goes_on);
	thread->stack_id = leaving->stack_id;
	thread->holder_stack_id = leaving->holder_stack_id;
	thread->wait_id = cfg_wait_detail ? announce_wait(&leaving->wait) : PYBPF_WAIT_ID(leaving->wait.state);
	thread->wait_id |= leaving->with_gil;
	thread->state = leaving->wait.state;
	return 0;
}

static __always_inline void end_running(__u64 *ctx, struct task_struct *task, __u32 state, __u64 now)
{
	struct leave leave = {};
	struct pybpf_thread *thread;
	struct leaving *leaving;
	__u64 stack_id;

	if (!leave_find(task, &leave)) {
		if (leave.proc)
			leave_forget(task, now, time_is_wanted(leave.proc));
		return;
	}
	if (!leave.thread && !leave_new(task, now, &leave))
		return;
	if (!leave_begin(task, now, &leave) || !leave.c.s || !leave.proc || !leave.thread)
		return;
	leaving = &leave.c.s->leaving;
	thread = leave.thread;
	stack_id = walk_leaving(&leave.c, begin_leaving(&leave.c, leave.proc, task, thread->id.tid, ctx));
	leaving->stack_id = stack_id;
	if (cfg_loop_block_ns && stack_id >= PYBPF_STACK_ID_STACKS)
		callback_see(PYBPF_CONTEXT_SWITCH, 1);
	else if (cfg_loop_block_ns)
		callback_unseen(task->pid);
	leave_gil(&leave.c);
	thread->since_ns = leave.now;
	thread->woken_ns = 0;
	thread->ready_id = PYBPF_WAIT_ID(PYBPF_STATE_QUEUED);
	thread->waker_id = PYBPF_WAKER_UNKNOWN;
	/* ctx[0]: it was preempted. */
	if (ctx[0] || !state) {
		thread->stack_id = leaving->stack_id;
		thread->holder_stack_id = 0;
		thread->wait_id = ready_id(task) | leaving->with_gil;
		thread->state = PYBPF_WAIT_STATE_OF(thread->wait_id);
		return;
	}
	leave_wait(&leave.c, state);
	if (cfg_wait_detail && leave.c.l && leaving->use == GIL_FUTEX_TAKE)
		find_holder(&leave.c);
	leave_asleep(thread, leaving);
}

SEC("?tp_btf/sched_switch")
int wait_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	__u32 state = compat_left_state(ctx, prev);
	__u64 now = bpf_ktime_get_ns();

	if (!waits_on)
		return 0;
	if (!(state & TASK_DEAD))
		end_running(ctx, prev, state, now);
	begin_running(next, now);
	return 0;
}

/* Other than sched_waking, this comes only after the thread's switch (try_to_wake_up() waits for p->on_cpu). */
SEC("?tp_btf/sched_wakeup")
int BPF_PROG(wait_wakeup, struct task_struct *task)
{
	__u32 pid = task->pid;
	struct pybpf_thread *thread = bpf_map_lookup_elem(&threads, &pid);
	struct pybpf_wait wait = {};

	if (!thread || thread->woken_ns || !waits_on)
		return 0;
	thread->woken_ns = bpf_ktime_get_ns();
	thread->ready_id = ready_id(task);
	if (cfg_wait_detail && thread->state == PYBPF_STATE_POLL && describe_ready(&wait, task))
		thread->wait_id = announce_wait(&wait) | (thread->wait_id & PYBPF_WAIT_WITH_GIL);
	return 0;
}

SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(wait_new, struct task_struct *task)
{
	struct pybpf_thread fresh = {
		.stack_id = PYBPF_STACK_ID_NEW,
		.wait_id = PYBPF_WAIT_ID(PYBPF_STATE_QUEUED),
		.state = PYBPF_STATE_QUEUED,
		.moved = 1,
	};
	__u32 tgid = compat_task_tgid(task);
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	if (!waits_on || !time_is_wanted(proc) || !filter_passes())
		return 0;
	init_thread(&fresh, task, proc->proc_id, bpf_ktime_get_ns());
	add_thread(task->pid, &fresh);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(wait_exit, struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 pid = task->pid;
	struct pybpf_thread *thread = bpf_map_lookup_elem(&threads, &pid);

	if (!thread || !waits_on)
		return 0;
	end_thread(thread, task, pid, now);
	forget_thread(thread, pid);
	return 0;
}

/* Has the thread's entry where its PID is from now on. */
static __noinline int move_thread(struct task_struct *task, __u32 old)
{
	struct pybpf_thread *thread = bpf_map_lookup_elem(&threads, &old), moved;
	__u32 pid = task->pid;

	if (!thread)
		return 0;
	moved = *thread;
	moved.id.tid = tid_of(task);
	moved.id.tid_start_ms = start_ms_of(task);
	bpf_map_delete_elem(&threads, &old);
	if (bpf_map_update_elem(&threads, &pid, &moved, BPF_ANY))
		__sync_fetch_and_add(&threads_lost, 1);
	return 0;
}

/*
 * Time before belongs to the program before. A thread that is no leader has its leader's PID and start from now on
 * (de_thread()).
 */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(wait_exec, struct task_struct *task, int old_pid)
{
	__u32 pid = task->pid, old = old_pid;
	struct pybpf_thread *thread = bpf_map_lookup_elem(&threads, &old);

	if (!thread)
		return 0;
	if (waits_on)
		end_thread(thread, task, old, bpf_ktime_get_ns());
	if (pid != old)
		move_thread(task, old);
	return 0;
}

/* What a thread does that was there before, and since when that is known. */
struct found_state {
	__u64 now;
	__u64 wait_id;
	__u32 state;
};

/* Describes a thread that was there before, and in which state it is. */
static __noinline int find_state(struct task_struct *task, const struct pybpf_proc *proc, struct found_state *is,
				 struct pybpf_thread_found *found)
{
	struct waiting thread = {.task = task};
	struct pybpf_wait_event event = {};
	__u32 state = compat_state(task);

	is->now = bpf_ktime_get_ns();
	found->proc_id = proc->proc_id;
	found->thread_id = compat_thread_id(task, proc->runtimes[0].thread_bias);
	found->pid = BPF_CORE_READ(task, pid);
	found->tid = tid_of(task);
	if (!state) {
		is->wait_id = PYBPF_WAIT_ID(PYBPF_STATE_QUEUED);
		is->state = BPF_CORE_READ(task, on_cpu) ? PYBPF_STATE_RUNNING : PYBPF_STATE_QUEUED;
		return 0;
	}
	describe_wait(&event.wait, &thread, state);
	found->futex = thread.futex;
	found->polled = thread.polled;
	if (cfg_native)
		compat_entry_place(task, &found->pc, &found->sp, &found->bp);
	is->wait_id = cfg_wait_detail ? announce(&event) : PYBPF_WAIT_ID(event.wait.state);
	is->state = event.wait.state;
	return 0;
}

static __noinline int add_found(struct task_struct *task, __u64 proc_id, __u32 pid, const struct found_state *is)
{
	struct pybpf_thread fresh = {.stack_id = PYBPF_STACK_ID_EARLIER};

	init_thread(&fresh, task, proc_id, is->now);
	fresh.wait_id = is->wait_id;
	fresh.state = is->state;
	add_thread(pid, &fresh);
	return 0;
}

/* Begins the time of the threads that are there already, and writes each of them for user space to read its stack. */
SEC("?iter/task")
int wait_find(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pybpf_thread_found found = {};
	struct found_state is = {};
	struct pybpf_proc *proc;

	if (!task || !task->mm || task->flags & PF_EXITING)
		return 0;
	/* The key of a process, and then of its thread. */
	found.pid = compat_task_tgid(task);
	proc = bpf_map_lookup_elem(&procs, &found.pid);
	if (!time_is_wanted(proc) || !filter_passes_task(task))
		return 0;
	find_state(task, proc, &is, &found);
	if (!bpf_map_lookup_elem(&threads, &found.pid))
		add_found(task, proc->proc_id, found.pid, &is);
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}

/* The descriptor that a thread polls alone, as user space has read it. Key: as of map threads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} polled SEC(".maps");

/*
 * Describes these descriptors in place of the poll(). A thread that wakes up meanwhile keeps what it notes itself: its
 * new wait has another id, and what is exchanged here must have the old one.
 */
SEC("?iter/task")
int wait_see_polled(struct bpf_iter__task *ctx)
{
	struct waiting waiting = {.task = ctx->task};
	struct pybpf_wait wait = {.call = PYBPF_CALL_POLL};
	struct pybpf_thread *thread;
	__u64 before, after;
	__u32 pid, *fd;

	if (!waiting.task)
		return 0;
	pid = BPF_CORE_READ(ctx, task, pid);
	fd = bpf_map_lookup_elem(&polled, &pid);
	thread = fd ? bpf_map_lookup_elem(&threads, &pid) : NULL;
	if (!thread || thread->moved || thread->state != PYBPF_STATE_POLL)
		return 0;
	before = thread->wait_id;
	wait_describe_polled(&wait, &waiting, *fd);
	if (wait.file == PYBPF_FILE_NONE && wait.state == PYBPF_STATE_OTHER)
		return 0;
	after = cfg_wait_detail ? announce_wait(&wait) : PYBPF_WAIT_ID(wait.state);
	if (__sync_val_compare_and_swap(&thread->wait_id, before, after) == before)
		__sync_val_compare_and_swap(&thread->state, PYBPF_STATE_POLL, wait.state);
	return 0;
}

#endif
