/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is kept of a thread, its thread pointer, and what kind of thread it is. */
#ifndef PYBPF_COMPAT_THREAD_BPF_H
#define PYBPF_COMPAT_THREAD_BPF_H

#include "compat_base.bpf.h"

/* What is kept of a thread between samples. */
struct thread_cache {
	struct walk_states states; /* its thread states; count is 0 when a search found none */
	__u64 lists;               /* without a thread state: thread_lists at that time */
	__u64 proc_id;
	__u32 age;     /* samples since the search that found none */
	__u32 runtime; /* in the first runtime's entry: where its last stack was found */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_cache);
} thread_storage SEC(".maps");

/* The caches of all runtimes but the process's first: few processes have more than one. */
struct thread_caches {
	struct thread_cache of[PYBPF_MAX_RUNTIMES];
};
_Static_assert(!(PYBPF_MAX_RUNTIMES & (PYBPF_MAX_RUNTIMES - 1)), "an index can be masked");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_caches);
} thread_more_storage SEC(".maps");

/* Before 6.4. Key: PID and start time of the thread, and the runtime. */
struct thread_key {
	__u64 start_time;
	__u32 pid;
	__u32 runtime;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct thread_key);
	__type(value, struct thread_cache);
} thread_hash SEC(".maps");

/* Not on the stack: all programs that call each other share 512 bytes of it. */
static const struct thread_cache fresh_thread;

/* Returns the current thread's cache entry for a runtime, made if need be; NULL without memory for one. */
static __always_inline struct thread_cache *compat_thread_cache(__u32 runtime)
{
	if (cfg_task_storage && runtime) {
		struct thread_caches *more = bpf_task_storage_get(&thread_more_storage, bpf_get_current_task_btf(), 0,
								  BPF_LOCAL_STORAGE_GET_F_CREATE);

		if (!more)
			return NULL;
		/* Keeps the compiler from indexing a pointer that may be NULL, which the verifier refuses. */
		barrier_var(more);
		return &more->of[runtime & (PYBPF_MAX_RUNTIMES - 1)];
	}
	if (cfg_task_storage)
		return bpf_task_storage_get(&thread_storage, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);

	struct task_struct *task = compat_task();
	struct thread_key key = {
		.start_time = compat_thread_start(task), .pid = (__u32)compat_of_task(task, pid), .runtime = runtime};
	struct thread_cache *cache = bpf_map_lookup_elem(&thread_hash, &key);

	if (!cache) {
		bpf_map_update_elem(&thread_hash, &key, &fresh_thread, BPF_NOEXIST);
		cache = bpf_map_lookup_elem(&thread_hash, &key);
	}
	return cache;
}

/*
 * The thread pointer. x86-64: it is pthread_self(); the FS base, which the kernel keeps in the thread struct
 * (arch_prctl and CLONE_SETTLS both store it there). arm64: pthread_self() lies below it by a constant of the C
 * library. The kernel has what the register held at the thread's last switch, and programs set it without a system
 * call. So for the thread that called exec it is that of the program before, or 0, until its first switches since.
 */
#if defined(__TARGET_ARCH_x86)
#define COMPAT_THREAD_BIAS          0
#define compat_thread_pointer(task) compat_of_task(task, thread.fsbase)
#elif defined(__TARGET_ARCH_arm64)
#define COMPAT_THREAD_BIAS          1
#define compat_thread_pointer(task) compat_of_task(task, thread.uw.tp_value)
#else
#error "no thread pointer for this architecture"
#endif

/* How often the thread was switched away from: the low 32 bits. */
#define compat_task_switches(task) ((__u32)(compat_of_task(task, nvcsw) + compat_of_task(task, nivcsw)))

/* Returns pthread_self() of a thread, or its thread pointer while the bias is not known; bias: PYBPF_NO_THREAD_BIAS. */
static __always_inline __u64 compat_thread_id(struct task_struct *task, __u16 bias)
{
	__u64 pointer = compat_thread_pointer(task);

	return COMPAT_THREAD_BIAS && bias != PYBPF_NO_THREAD_BIAS ? pointer - bias : pointer;
}

/* Returns whether the process of the current thread has no other one. */
static __always_inline bool compat_is_only_thread(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, nr_threads) == 1;
}

/*
 * Threads that the kernel runs inside a process (include/linux/sched.h): io_uring's since 5.12 (3bfe6106693b), vhost's
 * since 6.4 (54e6842d0775). They have the FS base of the thread that made them, but none of its frames. To 5.16 the
 * second bit is PF_USED_ASYNC, which a thread has while it loads a kernel module.
 */
#define PF_EXITING     0x00000004
#define PF_IO_WORKER   0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_KTHREAD     0x00200000

static __always_inline bool compat_is_kernel_worker(struct task_struct *task)
{
	return compat_of_task(task, flags) & (PF_IO_WORKER | PF_USER_WORKER);
}

#endif
