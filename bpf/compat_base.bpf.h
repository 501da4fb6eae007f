/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Constants that user space sets once it has probed the kernel, and the current thread. */
#ifndef PYBPF_COMPAT_BASE_BPF_H
#define PYBPF_COMPAT_BASE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "walk_thread_cache.h"

/*
 * Task storage for tracing programs is there since Linux 5.12 (a10787e6d58c), but its entries came from kmalloc(),
 * which an NMI must not call; from the BPF allocator since 6.4 (08a7ce384e33, 6ae9d5e99e1d).
 */
const volatile bool cfg_task_storage;

/* bpf_task_pt_regs(): Linux 5.15 (dd6e10fbd9fb). It takes what bpf_get_current_task_btf() returns (5.11, 3ca1032ab7ab).
 */
const volatile bool cfg_task_regs;

/* User memory can be read into any memory, see compat_read_user(). */
const volatile bool cfg_direct_reads;

/* The kernel reads no user memory but the interrupted thread's, see compat_memory_is_current(). */
const volatile bool cfg_checked_reads;

/* pybpf's PID namespace (inode of /proc/self/ns/pid), or 0 for the initial one. */
const volatile __u32 cfg_pidns_inum;

/*
 * Nanoseconds that pybpf's time namespace adds to the clocks (5.6): they are included in /proc/PID/stat and
 * clock_gettime(), and not in what the kernel keeps.
 */
const volatile __s64 cfg_boottime_offset;
const volatile __s64 cfg_monotonic_offset;

/* Nesting of PID namespaces has this limit (MAX_PID_NS_LEVEL, include/linux/pid_namespace.h). */
#define MAX_PID_NS_LEVEL 32

/* To the verifier, what a global function returns may be any number, whatever the compiler knows of it. */
static __always_inline int is_set(int any)
{
	barrier_var(any);
	return any != 0;
}

/* Returns the current thread, by one helper call for all that a sample needs of it. */
static __always_inline struct task_struct *compat_task(void)
{
	return cfg_task_regs ? bpf_get_current_task_btf() : (struct task_struct *)bpf_get_current_task();
}

/* A field of the task that compat_task() returned: a load, or a call. */
#define compat_of_task(task, field) (cfg_task_regs ? (task)->field : BPF_CORE_READ(task, field))

/* Returns when the current thread was started, ns since boot. */
static __always_inline __u64 compat_thread_start(struct task_struct *task)
{
	return compat_of_task(task, start_boottime);
}

#endif
