// SPDX-License-Identifier: Apache-2.0
/* Tells by what the kernel has set a thread's registers to when a signal or a stop ended its system call (signal(7)).
 */
#include "dump/woken.h"

#include <errno.h>
#include <stdint.h>

#include "base/remote.h"

#if defined(__x86_64__)
/*
 * The call's result, until the kernel has decided whether to begin it anew: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND
 * and ERESTART_RESTARTBLOCK of include/linux/errno.h.
 */
#define RESTARTS(result) ((result) == -512 || (result) == -513 || (result) == -514 || (result) == -516)

bool dump_was_woken(pid_t pid, const struct user_regs_struct *regs)
{
	long result = (long)regs->rax;

	(void)pid;
	return (long)regs->orig_rax >= 0 && (RESTARTS(result) || result == -EINTR);
}
#elif defined(__aarch64__)
/*
 * The kernel decides before it stops a thread (do_signal(), arch/arm64/kernel/signal.c): pc is that of the instruction
 * that begins the call anew, or that after it.
 */
#define SVC 0xd4000001u

static bool is_call(pid_t pid, uint64_t at)
{
	uint32_t instruction;

	return !remote_read(pid, at, &instruction, sizeof(instruction)) && instruction == SVC;
}

bool dump_was_woken(pid_t pid, const struct user_regs_struct *regs)
{
	return is_call(pid, regs->pc) ||
	       ((int64_t)regs->regs[0] == -EINTR && is_call(pid, regs->pc - sizeof(uint32_t)));
}
#endif
