/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The states of threads and the time in them, and the interval of each wait for user space. */
#ifndef PYBPF_WAIT_TIME_BPF_H
#define PYBPF_WAIT_TIME_BPF_H

#include "announce.bpf.h"
#include "wait_cause.bpf.h"
#include "wait_gil.bpf.h"

/* The table of threads must take the busiest programs; user space sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pybpf_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pybpf_wait_key);
	__type(value, struct pybpf_wait_time);
} wait_times SEC(".maps");

/* Waits sent to user space, by id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} waits SEC(".maps");

/* Wakers sent to user space, by id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} wakers SEC(".maps");

/* The leaf says what a thread waits for, beyond its state. */
const volatile bool cfg_wait_detail;
/* Shorter waits are only added up by thread and state. */
const volatile __u64 cfg_min_block_ns;

/* Time is added up by thread and state, without stacks. */
const volatile bool cfg_states_only;

/* Set by user space during the run: before it, no thread is known, and after it, no state changes. */
bool waits_on;

/* Time that found no room in map wait_times, and threads that found none in map threads. */
__u64 wait_lost_ns, threads_lost;

/* Intervals that found no room in the ring buffer or in user space. */
__u64 intervals_lost, intervals_lost_ns;

#define PF_EXITING 0x00000004 /* include/linux/sched.h */

/* Intervals leave the other half of the ring buffer to stacks, without which time is lost. */
static __always_inline bool is_half_full(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 2;
}

/* Sends an interval, unless it is short. begin_ns: in the kernel's CLOCK_MONOTONIC. */
static __always_inline void send_interval(const struct pybpf_wait_key *key, __u64 begin_ns, __u64 ns)
{
	struct pybpf_interval_event *record;

	if (!cfg_times || ns < PYBPF_INTERVAL_NS)
		return;
	record = memory_full || times_full || is_half_full() ? NULL : bpf_ringbuf_reserve(&events, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&intervals_lost, 1);
		__sync_fetch_and_add(&intervals_lost_ns, ns);
		return;
	}
	record->event.type = PYBPF_EVENT_INTERVAL;
	record->event.runtime = 0;
	record->event.sets = 0;
	record->event.size = sizeof(*record);
	record->time_ns = begin_ns + cfg_monotonic_offset;
	record->ns = ns;
	record->key = *key;
	bpf_ringbuf_submit(record, wake_flags());
}

/*
 * Adds time of a thread under its present stack. begin_ns: when it began, or 0 if it was no interval. earlier_ns: what
 * was added of the same wait before.
 */
static __always_inline void add_time(const struct pybpf_thread *thread, __u64 stack_id, __u64 wait_id, __u64 holder,
				     __u64 begin_ns, __u64 ns, __u64 earlier_ns)
{
	const struct pybpf_wait_key key = {
		.stack_id = stack_id,
		.proc_id = thread->proc_id,
		.wait_id = wait_id,
		.holder_stack_id = holder,
		/* What is not the wait itself comes after it: the time until a CPU. */
		.waker_id = wait_id == thread->wait_id ? thread->waker_id : 0,
		.tid = thread->tid,
		.tid_start_ms = thread->tid_start_ms,
	};
	const struct pybpf_wait_time first = {.count = !earlier_ns, .ns = ns, .longest_ns = earlier_ns + ns};
	struct pybpf_wait_time *time = bpf_map_lookup_elem(&wait_times, &key);

	if (!time) {
		/* The key is of one thread, which is in one place: nobody else adds it meanwhile. */
		if (bpf_map_update_elem(&wait_times, &key, &first, BPF_ANY)) {
			__sync_fetch_and_add(&wait_lost_ns, ns);
			return;
		}
	} else {
		time->count += !earlier_ns;
		time->ns += ns;
		if (earlier_ns + ns > time->longest_ns)
			time->longest_ns = earlier_ns + ns;
	}
	if (begin_ns)
		send_interval(&key, begin_ns, ns);
}

/*
 * Returns whether the wait, which lasted for ns, is shorter than wanted. How long a wait was that began before the run
 * is not known.
 */
static __always_inline bool is_short(const struct pybpf_thread *thread, __u64 ns)
{
	if (thread->stack_id == PYBPF_STACK_ID_EARLIER || ns >= cfg_min_block_ns)
		return false;
	return thread->state != PYBPF_STATE_GIL || ns < PYBPF_GIL_PART_NS;
}

/* Adds the time of a thread that was not running until now. */
static __always_inline void end_wait(struct pybpf_thread *thread, __u64 now)
{
	__u64 woken = thread->woken_ns, ready = thread->ready_id;

	if (cfg_gil_waits)
		ready |= thread->wait_id & PYBPF_WAIT_WITH_GIL;
	if (pybpf_state_is_ready(thread->state)) {
		add_time(thread, thread->stack_id, thread->wait_id, 0, thread->since_ns, now - thread->since_ns, 0);
		return;
	}
	if (woken < thread->since_ns || woken > now)
		woken = now;
	if (is_short(thread, woken - thread->since_ns))
		add_time(thread, PYBPF_STACK_ID_SHORT, PYBPF_WAIT_ID(thread->state), 0, 0, woken - thread->since_ns, 0);
	else
		add_time(thread, thread->stack_id, thread->wait_id, thread->holder_stack_id, thread->since_ns,
			 woken - thread->since_ns,
			 cfg_gil_waits && thread->state == PYBPF_STATE_GIL ? thread->gil_blocked_ns : 0);
	if (cfg_gil_waits && thread->state == PYBPF_STATE_GIL)
		gil_wait_ends(thread, woken - thread->since_ns);
	if (now > woken)
		add_time(thread, thread->stack_id, ready, 0, woken, now - woken, 0);
}

/*
 * wait_find may add a thread whose switch has begun on another CPU: that read the clock before.
 * Returns the time of the switch, or that at which the thread was found.
 */
static __always_inline __u64 not_before(const struct pybpf_thread *thread, __u64 now)
{
	return now > thread->since_ns ? now : thread->since_ns;
}

static __always_inline void run_since(struct pybpf_thread *thread, __u32 pid, __u64 now)
{
	end_wait(thread, now);
	if (cfg_loop_block_ns)
		callback_returns(pid, now);
	thread->state = PYBPF_STATE_RUNNING;
	thread->since_ns = now;
	thread->moved = 1;
}

/*
 * The current thread, which is running, is about to leave its CPU or to end. Returns for how long it has run.
 *
 * wait_find, which takes no lock, may have noted another state just before. And now and then a switch from the idle
 * task to a thread is not told (1 to 5 of 1,000 on a virtual machine with Linux 6.18, to ftrace and perf neither): what
 * woke the thread has ended its wait then.
 */
static __always_inline __u64 run_until(struct pybpf_thread *thread, __u32 pid, __u64 now)
{
	if (thread->state != PYBPF_STATE_RUNNING && thread->woken_ns > thread->since_ns && thread->woken_ns < now)
		run_since(thread, pid, thread->woken_ns);
	return now - thread->since_ns;
}

static __noinline int begin_running(struct task_struct *task, __u64 now)
{
	__u32 pid = task->pid;
	struct pybpf_thread *thread = bpf_map_lookup_elem(&threads, &pid);

	if (!thread || thread->state == PYBPF_STATE_RUNNING)
		return 0;
	run_since(thread, pid, not_before(thread, now));
	return 0;
}

/* Returns whether the time of this process's threads is to be kept. */
static __always_inline bool time_is_wanted(const struct pybpf_proc *proc)
{
	return proc && proc->state != PYBPF_PROC_OTHER && proc->state != PYBPF_PROC_UNWANTED;
}

static __always_inline struct pybpf_thread *add_thread(__u32 pid, const struct pybpf_thread *fresh)
{
	if (bpf_map_update_elem(&threads, &pid, fresh, BPF_NOEXIST) == -E2BIG)
		__sync_fetch_and_add(&threads_lost, 1);
	return bpf_map_lookup_elem(&threads, &pid);
}

/* The number of a thread in pybpf's PID namespace. */
static __always_inline __u32 tid_of(struct task_struct *task)
{
	return cfg_pidns_inum ? pid_in_namespace(BPF_CORE_READ(task, thread_pid)) : (__u32)BPF_CORE_READ(task, pid);
}

static __always_inline void init_thread(struct pybpf_thread *thread, struct task_struct *task, __u64 proc_id, __u64 now)
{
	thread->proc_id = proc_id;
	thread->since_ns = now;
	thread->ready_id = PYBPF_WAIT_ID(PYBPF_STATE_QUEUED);
	thread->tid = tid_of(task);
	thread->tid_start_ms = (__u32)(BPF_CORE_READ(task, start_boottime) / NS_PER_MS);
}

#endif
