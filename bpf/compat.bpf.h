/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every difference between kernels, and nothing else. User space probes once (session_kernel.c), sets the constants
 * below before the programs are loaded, and loads only the programs that this kernel takes.
 */
#ifndef PYBPF_COMPAT_BPF_H
#define PYBPF_COMPAT_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "pybpf.h"

/* Task storage and bpf_get_current_task_btf() for tracing programs: Linux 5.12 (a10787e6d58c). */
const volatile bool cfg_task_storage;

/* bpf_task_pt_regs(): Linux 5.15 (dd6e10fbd9fb). */
const volatile bool cfg_task_regs;

/* pybpf's PID namespace (inode of /proc/self/ns/pid), or 0 for the initial one. */
const volatile __u32 cfg_pidns_inum;

/* Nesting of PID namespaces has this limit (MAX_PID_NS_LEVEL, include/linux/pid_namespace.h). */
#define MAX_PID_NS_LEVEL 32

/* What is remembered of a thread between samples. */
struct thread_cache {
	__u64 tstate;       /* its thread state, or 0 when a search found none */
	__u64 interp;       /* the newest interpreter at that time */
	__u64 threads_head; /* without a thread state: the newest thread state of that interpreter */
	__u32 proc_id;
	__u32 several; /* there was more than one interpreter */
	__u32 age;     /* samples since the search that found none */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_cache);
} thread_storage SEC(".maps");

/* Before 5.12. Key: PID and start time of the thread. */
struct thread_key {
	__u64 start_time;
	__u32 pid;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct thread_key);
	__type(value, struct thread_cache);
} thread_hash SEC(".maps");

/* The current thread's cache entry, made if need be; NULL when there is no memory for one. */
static __always_inline struct thread_cache *compat_thread_cache(void)
{
	if (cfg_task_storage)
		return bpf_task_storage_get(&thread_storage, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);

	struct task_struct *task = (void *)bpf_get_current_task();
	struct thread_key key = {.start_time = BPF_CORE_READ(task, start_boottime),
				 .pid = (__u32)bpf_get_current_pid_tgid()};
	struct thread_cache *cache = bpf_map_lookup_elem(&thread_hash, &key);

	if (!cache) {
		struct thread_cache fresh = {};

		bpf_map_update_elem(&thread_hash, &key, &fresh, BPF_NOEXIST);
		cache = bpf_map_lookup_elem(&thread_hash, &key);
	}
	return cache;
}

/*
 * pthread_self() of the current thread. x86-64: glibc and musl use the FS base, which the kernel keeps in the thread
 * struct (arch_prctl and CLONE_SETTLS both store it there). arm64: the thread pointer; the C library's pthread_self()
 * lies below it by a constant that user space adds in discovery.
 */
static __always_inline __u64 compat_thread_pointer(void)
{
#if defined(__TARGET_ARCH_x86)
	if (cfg_task_storage)
		return bpf_get_current_task_btf()->thread.fsbase;
	return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), thread.fsbase);
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), thread.uw.tp_value);
#else
#error "no thread pointer for this architecture"
#endif
}

/* The general registers at the begin of struct bpf_perf_event_data, in the UAPI's order (asm/ptrace.h). */
#if defined(__TARGET_ARCH_x86)
#define COMPAT_REGISTERS 15 /* r15 to rdi of struct pt_regs */
#define COMPAT_MODE      17 /* cs */
#define COMPAT_MODE_MASK 3
#define COMPAT_MODE_USER 3
#elif defined(__TARGET_ARCH_arm64)
#define COMPAT_REGISTERS 31 /* x0 to x30 of struct user_pt_regs */
#define COMPAT_MODE      33 /* pstate */
#define COMPAT_MODE_MASK 0xf
#define COMPAT_MODE_USER 0
#endif

/*
 * Copies the registers of the interrupted program into room, which takes COMPAT_REGISTERS. Where the kernel was
 * interrupted they are those that the program entered it with. Returns how many.
 */
static __always_inline __u32 compat_registers(const void *ctx, __u64 *room)
{
	/* Whole words, each read as it stands: the verifier takes nothing else of a context. */
	const volatile __u64 *registers = ctx;

	if ((registers[COMPAT_MODE] & COMPAT_MODE_MASK) != COMPAT_MODE_USER) {
		if (!cfg_task_regs || bpf_probe_read_kernel(room, COMPAT_REGISTERS * sizeof(*room),
							    (void *)bpf_task_pt_regs(bpf_get_current_task_btf())))
			return 0;
		return COMPAT_REGISTERS;
	}
#pragma unroll
	for (int i = 0; i < COMPAT_REGISTERS; i++)
		room[i] = registers[i];
	return COMPAT_REGISTERS;
}

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

/* TGID << 32 | TID of the current thread as pybpf's own PID namespace counts them; 0 for one outside of it. */
static __always_inline __u64 compat_pid_tgid(void)
{
	if (!cfg_pidns_inum)
		return bpf_get_current_pid_tgid();

	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 tgid = pid_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));

	return tgid ? (__u64)tgid << 32 | pid_in_namespace(BPF_CORE_READ(task, thread_pid)) : 0;
}

#endif
