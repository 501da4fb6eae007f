/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every difference between kernels, and nothing else. User space probes once (user/kernel/features.c), sets the
 * constants below before the programs are loaded, and loads only the programs that this kernel takes.
 */
#ifndef PYBPF_COMPAT_BPF_H
#define PYBPF_COMPAT_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "walk_states.h"

/*
 * The sampler runs in an interrupt: the CPU clock's, or, by hardware cycles, an NMI, which comes inside of anything,
 * with any lock held. What it calls, from 5.10 to 7.2:
 *
 * - Look-ups in maps, bpf_get_smp_processor_id(), bpf_get_current_pid_tgid(), _uid_gid(), _comm(), _task() and
 *   _task_btf(), bpf_get_current_ancestor_cgroup_id(), bpf_task_pt_regs(), bpf_ringbuf_query(), bpf_tail_call() and
 *   bpf_loop() take no lock. bpf_ktime_get_ns() reads a clock that is made for NMIs (ktime_get_mono_fast_ns()).
 * - bpf_probe_read_kernel() takes no lock, and a fault in it is no page fault (copy_from_kernel_nofault()). For user
 *   memory see compat_read_user() and compat_memory_is_current().
 * - bpf_map_update_elem() and bpf_map_delete_elem() lock a bucket, a free list and, in LRU maps, the lists;
 *   bpf_ringbuf_output() locks the ring. The sampler never finds one of these locks held by what it interrupts: only
 *   the sampler itself and bpf(2) write to its maps and its ring, both raise bpf_prog_active, and while that is up no
 *   sampler is started (bpf_overflow_handler()). So no tracepoint's program may write there, for it raises nothing:
 *   the sampler would wait forever (hash maps before 5.11, 20b6cc34ea74; LRU maps in 6.18 still) or for a quarter
 *   of a second (rings since 6.15, a650d38915c1). For another CPU's lock it waits, or the call fails: rings in an NMI,
 *   free lists in an NMI (39d8f0d1026a, 5.10), and since 6.15 all (rqspinlock: 4fa8d68aa53e, a650d38915c1).
 *   No update allocates memory: all these maps are made with their elements.
 * - bpf_task_storage_get() makes an entry in an NMI from 6.4 on, see cfg_task_storage.
 *
 * What failed is counted: the sample (stack_table_busy, untimed), or its stack is sent with the next one
 * (ring_buffer_full where there is none). A thread's entry or a code object's copy that was not made costs time only.
 */

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

struct bounce {
	__u8 bytes[PYBPF_READ_MAX];
};

/* One per possible CPU, stored by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct pybpf_bounce_key);
	__type(value, struct bounce);
} bounces SEC(".maps");

/* Out of line: the verifier of 5.10 forgets the bounds of what the compiler would have to spill here. */
static __noinline long bounce_user(void *dst, __u32 size, __u64 addr)
{
	struct pybpf_bounce_key key = {.bits = PYBPF_BOUNCE_KEY_BITS, .cpu = bpf_get_smp_processor_id()};
	struct bounce *bounce = bpf_map_lookup_elem(&bounces, &key);

	if (!bounce || size > sizeof(*bounce) || bpf_probe_read_user(bounce, size, (const void *)addr))
		return -1;
	return bpf_probe_read_kernel(dst, size, bounce);
}

/*
 * Reads memory of the interrupted thread. Returns 0 or a negative number.
 *
 * Under CONFIG_HARDENED_USERCOPY, Linux 5.19 (0aef499f3172) looks the destination up in vmalloc's areas where it is in
 * their range, and takes vmap_area_lock for that: whoever is interrupted while it holds the lock never gives it back.
 * 6.4, 6.3.10 and 6.1.36 do not (d319f344561d). Arrays of more than 32 KiB are in that range, and so are per-CPU maps
 * and the stack that interrupts run on (map_irq_stack() in arch/x86/kernel/irq_64.c): scratch memory and the BPF stack
 * both. The elements of a trie are not, for each comes from kmalloc() (lpm_trie_node_alloc()), and its look-up takes
 * no lock.
 */
static __always_inline long compat_read_user(void *dst, __u32 size, __u64 addr)
{
	if (cfg_direct_reads)
		return bpf_probe_read_user(dst, size, (const void *)addr);
	return bounce_user(dst, size, addr);
}

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

/* Indices of registers in struct bpf_perf_event_data, which begins with them in the UAPI's order (asm/ptrace.h). */
#if defined(__TARGET_ARCH_x86)
#define COMPAT_REGISTERS 15 /* r15 to rdi of struct pt_regs */
#define COMPAT_IP        16 /* ip */
#define COMPAT_MODE      17 /* cs */
#define COMPAT_STACK     19 /* sp */
#define COMPAT_MODE_MASK 3
#define COMPAT_MODE_USER 3
#define COMPAT_ADDRESS   22 /* behind ss and the period */
#elif defined(__TARGET_ARCH_arm64)
#define COMPAT_REGISTERS 31 /* x0 to x30 of struct user_pt_regs */
#define COMPAT_STACK     31 /* sp */
#define COMPAT_IP        32 /* pc */
#define COMPAT_MODE      33 /* pstate */
#define COMPAT_MODE_MASK 0xf
#define COMPAT_MODE_USER 0
#define COMPAT_ADDRESS   35 /* behind pstate and the period */
#endif

/* Returns whether a perf event interrupted a program, and not the kernel. */
static __always_inline bool compat_is_user(const void *ctx)
{
	const volatile __u64 *registers = ctx;

	return (registers[COMPAT_MODE] & COMPAT_MODE_MASK) == COMPAT_MODE_USER;
}

/*
 * Copies the registers with which the program entered the kernel into room, which holds COMPAT_REGISTERS. Returns their
 * number; *stack_pointer is 0 when it returns 0.
 */
static __always_inline __u32 compat_entry_registers(__u64 *room, __u64 *stack_pointer)
{
	const __u64 *entered;

	*stack_pointer = 0;
	if (!cfg_task_regs)
		return 0;
	entered = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if (bpf_probe_read_kernel(room, COMPAT_REGISTERS * sizeof(*room), entered))
		return 0;
	bpf_probe_read_kernel(stack_pointer, sizeof(*stack_pointer), entered + COMPAT_STACK);
	return COMPAT_REGISTERS;
}

/*
 * Copies the registers of the program that a perf event interrupted, which may be in the kernel. ctx: struct
 * bpf_perf_event_data.
 */
static __always_inline __u32 compat_registers(const void *ctx, __u64 *room, __u64 *stack_pointer)
{
	/* Each word is read as a whole: the verifier accepts no other read of a context. */
	const volatile __u64 *registers = ctx;

	if (!compat_is_user(ctx))
		return compat_entry_registers(room, stack_pointer);
	*stack_pointer = registers[COMPAT_STACK];
#pragma unroll
	for (int i = 0; i < COMPAT_REGISTERS; i++)
		room[i] = registers[i];
	return COMPAT_REGISTERS;
}

#if defined(__TARGET_ARCH_x86)
#define COMPAT_BP 4
#elif defined(__TARGET_ARCH_arm64)
#define COMPAT_BP 29
#endif

/*
 * Reads what a search for a task's native frames begins with: the instruction pointer, the stack pointer and the frame
 * pointer, with which it entered the kernel. All are 0 if they are not there.
 */
static __always_inline void compat_entry_place(struct task_struct *task, __u64 *pc, __u64 *sp, __u64 *bp)
{
	const __u64 *entered;

	*pc = *sp = *bp = 0;
	if (!cfg_task_regs)
		return;
	entered = (void *)bpf_task_pt_regs(task);
	bpf_probe_read_kernel(pc, sizeof(*pc), entered + COMPAT_IP);
	bpf_probe_read_kernel(sp, sizeof(*sp), entered + COMPAT_STACK);
	bpf_probe_read_kernel(bp, sizeof(*bp), entered + COMPAT_BP);
}

/* Likewise, of the program that a perf event interrupted, which may be in the kernel. */
static __always_inline void compat_place(const void *ctx, __u64 *pc, __u64 *sp, __u64 *bp)
{
	const volatile __u64 *registers = ctx;

	if (!compat_is_user(ctx)) {
		compat_entry_place(bpf_get_current_task_btf(), pc, sp, bp);
		return;
	}
	*pc = registers[COMPAT_IP];
	*sp = registers[COMPAT_STACK];
	*bp = registers[COMPAT_BP];
}

/* Returns the address of the program's instruction that a perf event interrupted, or 0 if that was in the kernel. */
static __always_inline __u64 compat_user_ip(const void *ctx)
{
	const volatile __u64 *registers = ctx;

	return compat_is_user(ctx) ? registers[COMPAT_IP] : 0;
}

/* Returns the address that was touched; ctx: of a perf event that counts page faults. */
static __always_inline __u64 compat_fault_address(const void *ctx)
{
	const volatile __u64 *registers = ctx;

	return registers[COMPAT_ADDRESS];
}

/* The system call that a thread is in. */
struct compat_syscall {
	__s64 number; /* negative: none, as after a page fault */
	__u64 args[4];
};

/* cfg_task_regs is set: user space does not load what calls this without it. */
static __always_inline void compat_read_syscall(struct task_struct *task, struct compat_syscall *call)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	call->number = BPF_CORE_READ(regs, orig_ax);
	call->args[0] = BPF_CORE_READ(regs, di);
	call->args[1] = BPF_CORE_READ(regs, si);
	call->args[2] = BPF_CORE_READ(regs, dx);
	call->args[3] = BPF_CORE_READ(regs, r10);
#elif defined(__TARGET_ARCH_arm64)
	call->number = BPF_CORE_READ(regs, syscallno);
	call->args[0] = BPF_CORE_READ(regs, orig_x0);
	call->args[1] = BPF_CORE_READ(regs, regs[1]);
	call->args[2] = BPF_CORE_READ(regs, regs[2]);
	call->args[3] = BPF_CORE_READ(regs, regs[3]);
#endif
}

/* THREAD_SIZE of x86-64 and arm64, at least. */
#define COMPAT_STACK_SIZE 16384

/* Room in a map: an address that is read from there is a number for the verifier. */
struct compat_addresses {
	__u64 context, registers;
};

/*
 * Returns whether the kernel works for the current thread, and not for an interrupt that hit it. ctx: of a raw
 * tracepoint, whose arguments are on the stack of who runs (bpf_trace_run1()). Interrupts of the kernel, and soft
 * interrupts at the end of a system call, have their own stack; those of a user program have no system call, nor do
 * kernel threads, which never return to a user program. preempt_count would say it, but its variable is no symbol that
 * programs may name without CONFIG_KALLSYMS_ALL.
 */
static __always_inline bool compat_works_for(struct task_struct *task, void *ctx, __s64 call,
					     volatile struct compat_addresses *room)
{
	room->context = (__u64)ctx;
	room->registers = (__u64)bpf_task_pt_regs(task);
	if (room->registers - room->context >= COMPAT_STACK_SIZE)
		return false;
	return call >= 0 || task->flags & (PF_KTHREAD | PF_EXITING);
}

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
