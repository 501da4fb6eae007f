/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Numbers, memory, times and groups of processes; the kinds of samples. */
#ifndef PYBPF_COMPAT_PROCESS_BPF_H
#define PYBPF_COMPAT_PROCESS_BPF_H

#include "compat_base.bpf.h"

/* The kind of all samples; with several kinds, a source's kind is the cookie that it was attached with. */
const volatile __u32 cfg_kind;
const volatile bool cfg_cookies;

/* 5.15 (7adfc6c9b315) */
static __always_inline __u32 compat_cookie(void *ctx)
{
	return (__u32)bpf_get_attach_cookie(ctx);
}

/* Returns the number of pid in pybpf's PID namespace; 0 outside of it. */
static __always_inline __u32 pid_in_namespace(struct pid *pid)
{
	for (__u32 level = 0; level < MAX_PID_NS_LEVEL; level++) {
		struct upid upid;

		if (level > BPF_CORE_READ(pid, level) || bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
			break;
		if (BPF_CORE_READ(upid.ns, ns.inum) == cfg_pidns_inum)
			return (__u32)upid.nr;
	}
	return 0;
}

/* Returns TGID << 32 | TID of the current thread in pybpf's own PID namespace; 0 outside of it. */
static __always_inline __u64 compat_pid_tgid(struct task_struct *task)
{
	if (!cfg_pidns_inum)
		return cfg_task_regs ? (__u64)task->tgid << 32 | (__u32)task->pid : bpf_get_current_pid_tgid();

	__u32 tgid = pid_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));

	return tgid ? (__u64)tgid << 32 | pid_in_namespace(BPF_CORE_READ(task, thread_pid)) : 0;
}

/* Returns the TGID of any task in pybpf's own PID namespace; 0 outside of it. */
static __always_inline __u32 compat_task_tgid(struct task_struct *task)
{
	if (!cfg_pidns_inum)
		return BPF_CORE_READ(task, tgid);
	return pid_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));
}

/* Returns the TGID of a task in the task's own PID namespace, the innermost one. */
static __always_inline __u32 compat_inner_tgid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid upid;

	if (level >= MAX_PID_NS_LEVEL || bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
		return 0;
	return (__u32)upid.nr;
}

/*
 * Returns the mm_struct of any task, NULL for a kernel thread. By a call, and not by a load as in compat_current_mm():
 * for each load of a pointer from a struct that it trusts, the verifier searches all types of the kernel several times
 * (btf_nested_type_is_trusted(), Linux 6.3), which takes it a millisecond. What calls this runs seldom.
 */
static __always_inline struct mm_struct *compat_task_mm(const struct task_struct *task)
{
	return BPF_CORE_READ(task, mm);
}

/* Returns the address of the current thread's mm_struct. */
static __always_inline __u64 compat_current_mm(struct task_struct *task)
{
	return (__u64)compat_of_task(task, mm);
}

/* Returns how many pages of code the current thread's process has mapped. */
static __always_inline __u64 compat_code_pages(struct task_struct *task)
{
	struct mm_struct *mm = compat_of_task(task, mm);

	return mm ? BPF_CORE_READ(mm, exec_vm) : 0;
}

/*
 * Returns whether the memory that is read now is the interrupted thread's. The NMI of hardware cycles may come while
 * the CPU switches threads and already has the next one's memory, where the same addresses can hold the stack of
 * another worker that the same parent forked. From 6.4, 6.3.10 and 6.1.36 on, reads fail then (d319f344561d: the kernel
 * asks nmi_uaccess_okay()). Before, the run queue tells: it has the next thread before the memory is switched
 * (__schedule(), context_switch()). Only CONFIG_FAIR_GROUP_SCHED leads to the run queue; without it user space samples
 * without NMI.
 */
static __always_inline bool compat_memory_is_current(void)
{
	struct task_struct *task;

	if (cfg_checked_reads || !bpf_core_field_exists(((struct cfs_rq *)0)->rq))
		return true;
	task = (void *)bpf_get_current_task();
	return BPF_CORE_READ(task, se.cfs_rq, rq, curr) == task;
}

/* The unit of /proc's times, USER_HZ, is 100 on x86 and arm64 (include/asm-generic/param.h). */
#define NS_PER_CLOCK_TICK 10000000

/* Returns when the task's process was started, as in /proc/PID/stat: clock ticks since boot. */
static __always_inline __u64 compat_start(struct task_struct *task)
{
	return (BPF_CORE_READ(task, group_leader, start_boottime) + cfg_boottime_offset) / NS_PER_CLOCK_TICK;
}

/* Returns CLOCK_MONOTONIC as pybpf's clock_gettime() gives it. */
static __always_inline __u64 compat_monotonic_ns(void)
{
	return bpf_ktime_get_ns() + cfg_monotonic_offset;
}

/* An inode's change time: i_ctime to 6.5, __i_ctime to 6.10, then two fields. */
struct inode___to_6_5 {
	struct timespec64 i_ctime;
} __attribute__((preserve_access_index));

struct inode___to_6_10 {
	struct timespec64 __i_ctime; /* NOLINT(bugprone-reserved-identifier): the kernel's own name */
} __attribute__((preserve_access_index));

struct inode___from_6_11 {
	time64_t i_ctime_sec;
	__u32 i_ctime_nsec;
} __attribute__((preserve_access_index));

/*
 * Since 6.13 a bit beside the nanoseconds records that a program has asked for them (I_CTIME_QUERIED,
 * include/linux/fs.h).
 */
#define CTIME_QUERIED (1u << 31)

static __always_inline __u64 compat_ctime(struct inode *inode)
{
	struct inode___to_6_5 *first = (void *)inode;
	struct inode___to_6_10 *second = (void *)inode;
	struct inode___from_6_11 *third = (void *)inode;
	__u64 seconds;
	__u32 nanoseconds;

	if (bpf_core_field_exists(third->i_ctime_sec)) {
		seconds = BPF_CORE_READ(third, i_ctime_sec);
		nanoseconds = BPF_CORE_READ(third, i_ctime_nsec) & ~CTIME_QUERIED;
	} else if (bpf_core_field_exists(second->__i_ctime)) {
		seconds = BPF_CORE_READ(second, __i_ctime.tv_sec);
		nanoseconds = BPF_CORE_READ(second, __i_ctime.tv_nsec);
	} else {
		seconds = BPF_CORE_READ(first, i_ctime.tv_sec);
		nanoseconds = BPF_CORE_READ(first, i_ctime.tv_nsec);
	}
	return seconds * 1000000000u + nanoseconds;
}

/* Number of the v1 controller whose hierarchy the filter is for (enum cgroup_subsys_id); -1: v2. */
const volatile int cfg_cgroup_subsystem = -1;

/* bpf_get_current_ancestor_cgroup_id() for programs of these types: Linux 5.15 (95b861a7935b). It tells of v2. */
const volatile bool cfg_ancestor_cgroups;

/* From 6.1 on pointers, before it ids (cgroup.ancestor_ids, include/linux/cgroup-defs.h). */
struct cgroup___to_6_0 {
	__u64 ancestor_ids[0];
} __attribute__((preserve_access_index));

/* Returns the id of a thread's cgroup at a level of the hierarchy (0: its root); 0 when the cgroup is not that deep. */
static __always_inline __u64 compat_cgroup_ancestor_of(struct task_struct *task, int level)
{
	struct cgroup_subsys_state *state = NULL;
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup *cgroup;
	__u64 id = 0;

	if (cfg_cgroup_subsystem < 0) {
		cgroup = BPF_CORE_READ(set, dfl_cgrp);
	} else {
		bpf_core_read(&state, sizeof(state), &set->subsys[cfg_cgroup_subsystem & 31]);
		cgroup = BPF_CORE_READ(state, cgroup);
	}
	if (level > BPF_CORE_READ(cgroup, level))
		return 0;
	if (bpf_core_field_exists(cgroup->ancestors)) {
		struct cgroup *ancestor = NULL;

		bpf_core_read(&ancestor, sizeof(ancestor), &cgroup->ancestors[level & 31]);
		return BPF_CORE_READ(ancestor, kn, id);
	}
	bpf_core_read(&id, sizeof(id), &((struct cgroup___to_6_0 *)cgroup)->ancestor_ids[level & 31]);
	return id;
}

/* The same of the current thread. */
static __always_inline __u64 compat_cgroup_ancestor(int level)
{
	if (cfg_cgroup_subsystem < 0 && cfg_ancestor_cgroups)
		return bpf_get_current_ancestor_cgroup_id(level);
	return compat_cgroup_ancestor_of((void *)bpf_get_current_task(), level);
}

/* Fills in the rights of the sampled thread: the files that it names are opened with its rights only. */
static __always_inline void compat_rights(struct pybpf_rights *rights)
{
	const struct cred *cred = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), cred);

	rights->fsuid = BPF_CORE_READ(cred, fsuid.val);
	rights->fsgid = BPF_CORE_READ(cred, fsgid.val);
	rights->capabilities = 0;
	/* Two halves of 32 bits to 6.2, then (f122a08b197d) one number: the same bytes on a little-endian machine. */
	bpf_core_read(&rights->capabilities, sizeof(rights->capabilities), &cred->cap_effective);
}

#endif
