/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Who ends a wait (--wakers). At sched_waking the waker is current, unless an interrupt wakes: then the current thread
 * is the one that the interrupt hit, and did nothing. Outside of interrupts a wake-up is the work of the thread itself.
 */
#ifndef PYBPF_WAIT_WAKER_BPF_H
#define PYBPF_WAIT_WAKER_BPF_H

#include "wait.bpf.h"

/* Returns the sending socket's and the sleeper's sockets of one loopback connection: each has the other's port. */
static __always_inline bool are_peers(const struct pybpf_wait *one, struct sock *one_sk, const struct pybpf_wait *other,
				      struct sock *other_sk)
{
	if (!one_sk || !other_sk || one->file != other->file)
		return false;
	return bpf_ntohs(BPF_CORE_READ(one_sk, __sk_common.skc_dport)) ==
		       BPF_CORE_READ(other_sk, __sk_common.skc_num) &&
	       bpf_ntohs(BPF_CORE_READ(other_sk, __sk_common.skc_dport)) == BPF_CORE_READ(one_sk, __sk_common.skc_num);
}

/* Returns the TCP or UDP socket that is the first argument of a thread's system call, or NULL; describes it in *wait.
 */
static __always_inline struct sock *socket_of_call(struct task_struct *task, struct pybpf_wait *wait)
{
	struct compat_syscall call;
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **open = BPF_CORE_READ(table, fd), *file = NULL;
	struct socket *socket;
	__u32 fd;

	compat_read_syscall(task, &call);
	fd = (__u32)call.args[0];
	if (call.number < 0 || call.number > PYBPF_MAX_SYSCALL || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	wait->call = cfg_calls[call.number & PYBPF_MAX_SYSCALL];
	bpf_probe_read_kernel(&file, sizeof(file), open + fd);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return NULL;
	describe_socket(wait, file);
	if (wait->file != PYBPF_FILE_INET && wait->file != PYBPF_FILE_INET6)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

/*
 * The sender on a loopback connection runs the receiver's part, too, as a soft interrupt at the end of its own call.
 * Returns whether the current thread sends to the socket on which the other one sleeps.
 */
static __always_inline bool sends_to(struct task_struct *waker, struct task_struct *sleeper)
{
	struct pybpf_wait from = {}, to = {};
	struct sock *source = socket_of_call(waker, &from), *target = socket_of_call(sleeper, &to);

	if (from.call != PYBPF_CALL_WRITE && from.call != PYBPF_CALL_SEND)
		return false;
	return are_peers(&from, source, &to, target);
}

/* Sends a waker, unless it was sent already. Returns its id. */
static __always_inline __u64 announce_waker(struct pybpf_waker_event *event)
{
	const __u64 *words = (const void *)&event->waker;
	__u64 hash = 0;
	__u8 mark = 1;
	long err;

#pragma unroll
	for (unsigned i = 0; i < sizeof(event->waker) / sizeof(*words); i++)
		hash = walk_mix(hash, words[i]);
	event->waker_id = hash < PYBPF_WAKERS ? hash + PYBPF_WAKERS : hash;
	if (bpf_map_lookup_elem(&wakers, &event->waker_id))
		return event->waker_id;
	err = bpf_map_update_elem(&wakers, &event->waker_id, &mark, BPF_NOEXIST);
	if (err)
		return err == -EEXIST ? event->waker_id : PYBPF_WAKER_UNNAMED;
	if (!send(event, sizeof(*event)))
		return event->waker_id;
	bpf_map_delete_elem(&wakers, &event->waker_id);
	return PYBPF_WAKER_UNNAMED;
}

/* Describes the current thread as a waker. stack_id: what its walk has led to. Returns its id. */
static __noinline __u64 name_waker(struct task_struct *task, __u64 stack_id)
{
	struct pybpf_waker_event event = {.event = {.type = PYBPF_EVENT_WAKER, .size = sizeof(event)}};

	event.waker.tid = tid_of(task);
	event.waker.stack_id = stack_id < PYBPF_STACK_ID_STACKS ? 0 : stack_id;
	bpf_get_current_comm(&event.waker.comm, sizeof(event.waker.comm));
	return announce_waker(&event);
}

/* Begins the walk of the current thread if it is of a Python that is sampled. Returns as begin_leaving does. */
static __noinline __u64 begin_waker(struct loop_context *c, struct task_struct *task)
{
	__u32 tgid = compat_task_tgid(task);
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	c->s = scratch_get(PYBPF_CONTEXT_SWITCH);
	if (!c->s || !proc || proc->state != PYBPF_PROC_READY || !filter_passes())
		return PYBPF_STACK_ID_NO_THREAD;
	return begin_leaving(c, proc, task, tid_of(task), NULL);
}

/* Returns whether the current thread is no thread: a CPU without work, or the kernel thread of soft interrupts. */
static __always_inline bool is_of_interrupts(struct task_struct *task)
{
	char comm[16];

	bpf_get_current_comm(comm, sizeof(comm));
	return !task->pid || (task->flags & PF_KTHREAD && !bpf_strncmp(comm, sizeof("ksoftirqd/") - 1, "ksoftirqd/"));
}

/* Returns whether the current thread has woken the other one, and no interrupt that hit it. */
static __noinline int is_waker(void *ctx, struct task_struct *waker, struct task_struct *task, bool timed)
{
	struct scratch *s = scratch_get(PYBPF_CONTEXT_SWITCH);
	struct compat_syscall call;

	if (!s)
		return 0;
	compat_read_syscall(waker, &call);
	if (compat_works_for(waker, ctx, call.number, &s->addresses) && !is_of_interrupts(waker))
		return 1;
	return !timed && sends_to(waker, task);
}

SEC("?tp_btf/sched_waking")
int wait_waking(__u64 *ctx)
{
	struct task_struct *waker = bpf_get_current_task_btf(), *task = (void *)ctx[0];
	__u32 pid = task->pid;
	struct pybpf_thread *thread = bpf_map_lookup_elem(&threads, &pid);
	struct loop_context c = {};
	__u64 stack_id;
	__u32 state;
	bool timed;

	if (!thread || !waits_on || thread->woken_ns)
		return 0;
	state = thread->state;
	if (state == PYBPF_STATE_RUNNING || pybpf_state_is_ready(state))
		return 0;
	/* No device has a futex, or ends a sleep. */
	timed = state == PYBPF_STATE_SLEEP || state == PYBPF_STATE_LOCK || state == PYBPF_STATE_GIL;
	if (!is_waker(ctx, waker, task, timed)) {
		thread->waker_id = timed ? PYBPF_WAKER_TIMER : PYBPF_WAKER_INTERRUPT;
		return 0;
	}
	stack_id = begin_waker(&c, waker);
	if (c.s)
		stack_id = walk_leaving(&c, stack_id);
	thread->waker_id = name_waker(waker, stack_id);
	return 0;
}

#endif
