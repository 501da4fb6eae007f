/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The states of threads and the time in them, and the interval of each wait for user space. */
#ifndef PYBPF_WAIT_TIME_BPF_H
#define PYBPF_WAIT_TIME_BPF_H

#include "announce.bpf.h"
#include "callback.bpf.h"
#include "wait_cause.bpf.h"
#include "wait_gil.bpf.h"

/* The table of threads must take the busiest programs; user space sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pybpf_thread);
} threads SEC(".maps");

/* There are two sets in a run whose time is taken in parts, as of counts (maps.bpf.h), and they change with these. */
struct wait_times_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pybpf_wait_key);
	__type(value, struct pybpf_wait_time);
} wait_times SEC(".maps"), wait_times_2 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PYBPF_SETS);
	__type(key, __u32);
	__array(values, struct wait_times_map);
} wait_times_sets SEC(".maps");

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

/* There are two maps wait_times. */
const volatile bool cfg_wait_sets;

/* The states of threads are followed; else this file's maps do not exist. */
const volatile bool cfg_waits;

/* Set by user space during the run: before it, no thread is known, and after it, no state changes. */
bool waits_on;

/* Time that found no room in map wait_times, and threads that found none in map threads. */
__u64 wait_lost_ns, threads_lost;

/* Waits whose cause was not recorded, as map waits is full. */
__u64 waits_unnamed;

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
	record = !takes_new_stacks() || times_full || is_half_full() ? NULL
								     : bpf_ringbuf_reserve(&events, sizeof(*record), 0);
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

static __always_inline void *wait_times_now(void)
{
	__u32 set = PYBPF_COUNTS_SET(current_sets);

	return cfg_wait_sets ? bpf_map_lookup_elem(&wait_times_sets, &set) : &wait_times;
}

/*
 * Adds time of a thread. begin_ns: when it began, or 0 if it was no interval. earlier_ns: what was added of the same
 * wait before.
 */
static __always_inline void add_time(const struct pybpf_wait_key *key, __u64 begin_ns, __u64 ns, __u64 earlier_ns)
{
	const struct pybpf_wait_time first = {.count = !earlier_ns, .ns = ns, .longest_ns = earlier_ns + ns};
	void *times = wait_times_now();
	struct pybpf_wait_time *time = times ? bpf_map_lookup_elem(times, key) : NULL;

	if (!time) {
		/* The key is of one thread, which is in one place: nobody else adds it meanwhile. */
		if (!times || bpf_map_update_elem(times, key, &first, BPF_ANY)) {
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
		send_interval(key, begin_ns, ns);
}

static __always_inline void init_key(struct pybpf_wait_key *key, const struct pybpf_thread *thread, __u64 stack_id,
				     __u64 wait_id)
{
	key->stack_id = stack_id;
	key->thread = thread->id;
	key->wait_id = wait_id;
	key->holder_stack_id = 0;
	key->waker_id = 0;
}

/* Adds a wait that has ended. */
static __noinline int add_wait(const struct pybpf_thread *thread, __u64 ns)
{
	struct pybpf_wait_key key;

	/* How long one was that began before the run is not known. */
	if (ns < cfg_min_block_ns && thread->stack_id != PYBPF_STACK_ID_EARLIER) {
		init_key(&key, thread, PYBPF_STACK_ID_SHORT, PYBPF_WAIT_ID(thread->state));
		add_time(&key, 0, ns, 0);
		return 0;
	}
	init_key(&key, thread, thread->stack_id, thread->wait_id);
	key.holder_stack_id = thread->holder_stack_id;
	key.waker_id = thread->waker_id;
	add_time(&key, thread->since_ns, ns, 0);
	return 0;
}

/* Keeps a sleep for the GIL until it is known whether the wait is over: see add_gil_sleeps(). */
static __always_inline void keep_gil_sleep(struct pybpf_thread *thread, __u64 ns)
{
	gil_wait_ends(thread, ns);
	if (!thread->gil_ns)
		thread->gil_begin_ns = thread->since_ns;
	thread->gil_ns += ns;
	init_key(&thread->gil_key, thread, thread->stack_id, thread->wait_id);
	thread->gil_key.holder_stack_id = thread->holder_stack_id;
	thread->gil_key.waker_id = thread->waker_id;
}

/* Adds the sleeps that were kept, when the wait is over or has another holder. */
static __noinline int add_gil_sleeps(struct pybpf_thread *thread)
{
	__u64 ns = thread->gil_ns;

	if (!ns)
		return 0;
	thread->gil_ns = 0;
	if (thread->gil_waited_ns < cfg_min_block_ns) {
		init_key(&thread->gil_key, thread, PYBPF_STACK_ID_SHORT, PYBPF_WAIT_ID(PYBPF_STATE_GIL));
		add_time(&thread->gil_key, 0, ns, 0);
	} else {
		add_time(&thread->gil_key, thread->gil_begin_ns, ns,
			 thread->gil_waited_ns > ns ? thread->gil_waited_ns - ns : 0);
	}
	return 0;
}

/* Adds the time for which a thread was ready to run until now. */
static __noinline int add_ready(const struct pybpf_thread *thread, __u64 wait_id, __u64 since, __u64 now)
{
	struct pybpf_wait_key key;

	init_key(&key, thread, thread->stack_id, wait_id);
	add_time(&key, since, now - since, 0);
	return 0;
}

/*
 * On a time line, what a thread waits for a CPU stands between its sleeps for the GIL before and after: those until
 * then are an interval of their own.
 */
static __always_inline void split_gil_sleeps(struct pybpf_thread *thread, __u64 ready_ns)
{
	if (cfg_times && ready_ns >= PYBPF_INTERVAL_NS && thread->gil_waited_ns >= cfg_min_block_ns)
		add_gil_sleeps(thread);
}

/* Adds the time of a thread that was not running until now. */
static __always_inline void end_wait(struct pybpf_thread *thread, __u64 now)
{
	__u64 woken = thread->woken_ns;

	if (pybpf_state_is_ready(thread->state)) {
		split_gil_sleeps(thread, now - thread->since_ns);
		add_ready(thread, thread->wait_id, thread->since_ns, now);
		return;
	}
	if (woken < thread->since_ns || woken > now)
		woken = now;
	if (thread->state == PYBPF_STATE_GIL)
		keep_gil_sleep(thread, woken - thread->since_ns);
	else
		add_wait(thread, woken - thread->since_ns);
	if (now > woken) {
		split_gil_sleeps(thread, now - woken);
		add_ready(thread, thread->ready_id | (cfg_gil_waits ? thread->wait_id & PYBPF_WAIT_WITH_GIL : 0), woken,
			  now);
	}
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
 * task to a thread is not told (1 to 5 of 1,000 on a virtual machine with Linux 6.18, to ftrace and perf neither), and
 * of some of them what woke the thread is not, either. The scheduler has counted for how long the thread ran: so long
 * ago its wait ended, at the earliest when it was woken.
 */
static __always_inline __u64 run_until(struct pybpf_thread *thread, const struct task_struct *task, __u32 pid,
				       __u64 now)
{
	__u64 ran = BPF_CORE_READ(task, se.sum_exec_runtime) - thread->exec_ns, begin = now - ran;

	if (thread->state != PYBPF_STATE_RUNNING) {
		if (begin > now || begin < thread->since_ns)
			begin = thread->since_ns;
		run_since(thread, pid, begin < thread->woken_ns && thread->woken_ns < now ? thread->woken_ns : begin);
	}
	return now - thread->since_ns;
}

/*
 * The current thread is sampled, so it runs. Where that was not told (see run_until()), its wait ends now: else the
 * next callback of its loop would be seen before the one in which it slept has ended. The scheduler's count is behind
 * by a tick at most. A global function (kernel 5.6), so that the verifier checks it once.
 */
__noinline int run_sampled(void)
{
	struct task_struct *task = compat_task();
	__u32 pid = (__u32)bpf_get_current_pid_tgid();
	struct pybpf_thread *thread;

	if (!cfg_waits || !waits_on)
		return 0;
	thread = bpf_map_lookup_elem(&threads, &pid);
	if (thread && thread->state != PYBPF_STATE_RUNNING)
		run_until(thread, task, pid, bpf_ktime_get_ns());
	return 0;
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
	long err = bpf_map_update_elem(&threads, &pid, fresh, BPF_NOEXIST);

	/* The map is full or, where it grows, the kernel had no memory at hand. */
	if (err && err != -EEXIST)
		__sync_fetch_and_add(&threads_lost, 1);
	return bpf_map_lookup_elem(&threads, &pid);
}

/* The number of a thread in pybpf's PID namespace. */
static __always_inline __u32 tid_of(struct task_struct *task)
{
	return cfg_pidns_inum ? pid_in_namespace(BPF_CORE_READ(task, thread_pid)) : (__u32)BPF_CORE_READ(task, pid);
}

static __always_inline __u32 start_ms_of(struct task_struct *task)
{
	return (__u32)(BPF_CORE_READ(task, start_boottime) / NS_PER_MS);
}

static __always_inline void init_thread(struct pybpf_thread *thread, struct task_struct *task, __u64 proc_id, __u64 now)
{
	thread->id = (struct pybpf_thread_key){proc_id, tid_of(task), start_ms_of(task)};
	thread->begin_ns = now;
	thread->since_ns = now;
	thread->exec_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	thread->ready_id = PYBPF_WAIT_ID(PYBPF_STATE_QUEUED);
}

#endif
