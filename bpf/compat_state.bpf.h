/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* States of threads, and the quotas of their groups. */
#ifndef PYBPF_COMPAT_STATE_BPF_H
#define PYBPF_COMPAT_STATE_BPF_H

#include "compat_base.bpf.h"

/* Since Linux 5.18 (fa2c3254d7cf) sched_switch has the state of the thread that leaves as an argument. */
const volatile bool cfg_switch_state;

/* task_struct.state to 5.13 (2f064a59a11f). */
struct task_struct___to_5_13 {
	volatile long state;
} __attribute__((preserve_access_index));

/* libbpf's macro computes with a pointer to void. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpointer-arith"
static __always_inline bool compat_waits_for_disk(struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
}

/*
 * Returns whether the thread is held up for lack of memory, as CONFIG_PSI counts it: it has the kernel reclaim some,
 * or, on its way back to the program, its control group has more than memory.high.
 */
static __always_inline bool compat_waits_for_memory(struct task_struct *task)
{
	return bpf_core_field_exists(task->in_memstall) && BPF_CORE_READ_BITFIELD_PROBED(task, in_memstall);
}

/* Since 6.1 (f5d39b020809): a thread that the freezer of cgroup v1, or of the whole system, holds. */
#define TASK_FROZEN 0x8000

/* Since 6.7 (8f0eed4a78a8) without CONFIG_PREEMPT_RT, too. */
struct task_struct___saved_state {
	unsigned int saved_state;
} __attribute__((preserve_access_index));

/* include/linux/sched/jobctl.h, since 5.2 (76f969e8948d) */
#define JOBCTL_TRAP_FREEZE (1ul << 23)

/*
 * Returns whether a thread that leaves its CPU, or is asleep, in this state is frozen. cgroup v2 wakes threads for
 * that, v1 only marks who sleeps: since 6.7 it goes on with its sleep when it is thawed, and nothing tells of that.
 * For v2, who waits for a vfork() counts as frozen always (wait_for_vfork_done(), kernel/fork.c).
 */
static __always_inline bool compat_is_frozen(struct task_struct *task, __u32 state)
{
	struct task_struct___saved_state *saved = (void *)task;

	if (state & TASK_FROZEN)
		return !bpf_core_field_exists(saved->saved_state) || !BPF_CORE_READ(saved, saved_state);
	return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD_PROBED(task, frozen) &&
	       BPF_CORE_READ(task, jobctl) & JOBCTL_TRAP_FREEZE;
}
#pragma clang diagnostic pop

/* Since 6.18 a thread is throttled, when it returns to its program; before, all threads of a run queue are at once. */
struct task_struct___from_6_18 {
	bool throttled;
} __attribute__((preserve_access_index));

struct cfs_rq___bandwidth {
	int throttle_count; /* of this run queue and those above it */
} __attribute__((preserve_access_index));

struct cfs_bandwidth___bandwidth {
	__s64 period; /* ktime_t */
	__u64 quota;
} __attribute__((preserve_access_index));

struct task_group___bandwidth {
	struct task_group___bandwidth *parent;
	struct cfs_bandwidth___bandwidth cfs_bandwidth;
} __attribute__((preserve_access_index));

struct task_struct___bandwidth {
	struct task_group___bandwidth *sched_task_group;
} __attribute__((preserve_access_index));

/* Returns whether the thread, which is ready to run, does not since a control group has used up its quota of CPUs. */
static __always_inline bool compat_is_throttled(struct task_struct *task)
{
	struct task_struct___from_6_18 *one = (void *)task;
	struct cfs_rq___bandwidth *queue = (void *)BPF_CORE_READ(task, se.cfs_rq);

	if (bpf_core_field_exists(one->throttled))
		return BPF_CORE_READ(one, throttled);
	return bpf_core_field_exists(queue->throttle_count) && BPF_CORE_READ(queue, throttle_count) > 0;
}

/* Control groups above each other that are looked at. */
#define CGROUP_LEVELS_MAX 16
/* RUNTIME_INF (kernel/sched/sched.h): the group has no quota. */
#define NO_QUOTA (~0ull)

/* As compat_quota, of the control group at that address and those above it. Global: the verifier loops once. */
__noinline __u32 least_quota(__u64 address)
{
	struct task_group___bandwidth *group = (void *)address;
	__u64 least = 0;

	for (int i = 0; i < CGROUP_LEVELS_MAX && group; i++) {
		__u64 quota = BPF_CORE_READ(group, cfs_bandwidth.quota);
		__u64 period = (__u64)BPF_CORE_READ(group, cfs_bandwidth.period);

		if (quota != NO_QUOTA && period && (!least || quota * 1000 / period < least))
			least = quota * 1000 / period;
		group = BPF_CORE_READ(group, parent);
	}
	return (__u32)least;
}

/* Returns the smallest quota of the thread's control groups, in thousandths of a CPU, or 0 if none has one. */
static __always_inline __u32 compat_quota(struct task_struct *task)
{
	struct task_struct___bandwidth *of = (void *)task;
	struct task_group___bandwidth *group = NULL;

	if (!bpf_core_field_exists(group->cfs_bandwidth.quota))
		return 0;
	return least_quota((__u64)BPF_CORE_READ(of, sched_task_group));
}

static __always_inline __u32 compat_state(struct task_struct *task)
{
	struct task_struct___to_5_13 *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (__u32)BPF_CORE_READ(old, state);
}

/* The state in which the thread leaves its CPU; ctx: of tp_btf/sched_switch. */
static __always_inline __u32 compat_left_state(const __u64 *ctx, struct task_struct *task)
{
	return cfg_switch_state ? (__u32)ctx[3] : compat_state(task);
}

#endif
