/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Registers of the interrupted thread, its system call, and the address of a fault. */
#ifndef PYBPF_COMPAT_REGISTERS_BPF_H
#define PYBPF_COMPAT_REGISTERS_BPF_H

#include "compat_base.bpf.h"

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

#endif
