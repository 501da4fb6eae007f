/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a native frame to its caller by a rule, written once and compiled twice, as the walk is. The including file
 * defines NATIVE_MEMORY, a type, and native_word(memory, addr, out): reads a word of the program's memory, which must
 * be aligned; returns 0 or another number.
 */
#ifndef PYBPF_NATIVE_STEP_H
#define PYBPF_NATIVE_STEP_H

#include "pybpf_native.h"

#define NATIVE_WORD 8

/* r15 to rdi of struct pt_regs (arch/x86/include/uapi/asm/ptrace.h). */
#define NATIVE_REGISTERS 15

struct native_registers {
	__u64 pc, sp, bp;
	__u64 is_innermost;              /* all are those of the thread's innermost function */
	__u64 all[NATIVE_REGISTERS + 1]; /* only then */
};

/*
 * At the return of a signal handler the stack pointer leads to a struct ucontext, whose uc_mcontext has bp here, and sp
 * and ip one after the other (arch/x86/include/uapi/asm/sigcontext.h).
 */
#define NATIVE_UCONTEXT_BP 120
#define NATIVE_UCONTEXT_SP 160

static __always_inline enum pybpf_native_end native_step_signal(NATIVE_MEMORY *memory, struct native_registers *r)
{
	__u64 context = r->sp;

	if (native_word(memory, context + NATIVE_UCONTEXT_BP, &r->bp) ||
	    native_word(memory, context + NATIVE_UCONTEXT_SP, &r->sp) ||
	    native_word(memory, context + NATIVE_UCONTEXT_SP + NATIVE_WORD, &r->pc))
		return PYBPF_NATIVE_END_FAULT;
	return PYBPF_NATIVE_NOT_ASKED;
}

/* What vfork() has of its own on the stack would be its child's, too: it has nothing there. */
static __always_inline enum pybpf_native_end native_step_return(struct native_registers *r, __u32 rule)
{
	if (!r->is_innermost || PYBPF_RULE_REGISTER(rule) == PYBPF_RULE_NO_REGISTER)
		return PYBPF_NATIVE_END_REGISTER;
	r->pc = r->all[PYBPF_RULE_REGISTER(rule)];
	r->sp += (__u64)PYBPF_RULE_REGISTER_OFFSET(rule) * NATIVE_WORD;
	r->is_innermost = 0;
	return r->pc ? PYBPF_NATIVE_NOT_ASKED : PYBPF_NATIVE_END_WHOLE;
}

/*
 * Makes of a frame's registers those of its caller. pc: that of the frame in its file. Returns NOT_ASKED, or how the
 * search ends.
 */
static __always_inline enum pybpf_native_end native_step(NATIVE_MEMORY *memory, struct native_registers *r, __u32 rule,
							 __u32 pc)
{
	__u64 cfa = 0, bp_at = 0;

	switch (PYBPF_RULE_KIND(rule)) {
	case PYBPF_NATIVE_SP:
		cfa = r->sp + (__s64)PYBPF_RULE_OFFSET(rule) * NATIVE_WORD;
		break;
	case PYBPF_NATIVE_BP:
		cfa = r->bp + (__s64)PYBPF_RULE_OFFSET(rule) * NATIVE_WORD;
		break;
	case PYBPF_NATIVE_SP_WIDE:
		cfa = r->sp + (__u64)PYBPF_WIDE_OFFSET(rule) * NATIVE_WORD;
		if (PYBPF_WIDE_BELOW(rule))
			bp_at = cfa - (__u64)PYBPF_WIDE_BELOW(rule) * NATIVE_WORD;
		break;
	case PYBPF_NATIVE_PLT:
		cfa = r->sp + NATIVE_WORD;
		if ((pc & 15) >= (__u32)PYBPF_RULE_OFFSET(rule))
			cfa += NATIVE_WORD;
		break;
	case PYBPF_NATIVE_DEREF:
		if (native_word(memory, r->bp + (__s64)PYBPF_RULE_OFFSET(rule) * NATIVE_WORD, &cfa))
			return PYBPF_NATIVE_END_FAULT;
		bp_at = r->bp;
		break;
	case PYBPF_NATIVE_SP_DEREF:
		if (native_word(memory, r->sp + (__s64)PYBPF_RULE_OFFSET(rule) * NATIVE_WORD, &cfa))
			return PYBPF_NATIVE_END_FAULT;
		cfa += NATIVE_WORD;
		break;
	case PYBPF_NATIVE_SP_KEPT:
		if (native_word(memory, r->sp + (__u64)PYBPF_KEPT_PLACE(rule) * NATIVE_WORD, &cfa))
			return PYBPF_NATIVE_END_FAULT;
		cfa += (__u64)PYBPF_KEPT_OFFSET(rule) * NATIVE_WORD;
		if (PYBPF_KEPT_BELOW(rule))
			bp_at = cfa - (__u64)PYBPF_KEPT_BELOW(rule) * NATIVE_WORD;
		break;
	case PYBPF_NATIVE_SIGNAL:
		r->is_innermost = 0;
		return native_step_signal(memory, r);
	case PYBPF_NATIVE_END:
		return PYBPF_NATIVE_END_WHOLE;
	case PYBPF_NATIVE_EXPRESSION:
		return PYBPF_NATIVE_END_EXPRESSION;
	case PYBPF_NATIVE_REGISTER:
		if (!r->is_innermost || PYBPF_RULE_REGISTER(rule) == PYBPF_RULE_NO_REGISTER)
			return PYBPF_NATIVE_END_REGISTER;
		cfa = r->all[PYBPF_RULE_REGISTER(rule)] + (__u64)PYBPF_RULE_REGISTER_OFFSET(rule) * NATIVE_WORD;
		break;
	case PYBPF_NATIVE_SP_INDEXED:
		if (!r->is_innermost || PYBPF_RULE_REGISTER(rule) == PYBPF_RULE_NO_REGISTER)
			return PYBPF_NATIVE_END_REGISTER;
		cfa = r->all[PYBPF_RULE_REGISTER(rule)] + PYBPF_RULE_REGISTER_OFFSET(rule);
		if (native_word(memory, r->sp + cfa * NATIVE_WORD, &cfa))
			return PYBPF_NATIVE_END_FAULT;
		cfa += NATIVE_WORD;
		break;
	case PYBPF_NATIVE_RETURN:
		return native_step_return(r, rule);
	default:
		return PYBPF_NATIVE_END_NO_ROW;
	}
	/* Callers are further out on the stack. */
	if (cfa <= r->sp || cfa & (NATIVE_WORD - 1))
		return PYBPF_NATIVE_END_STUCK;
	if (PYBPF_RULE_BP(rule) == PYBPF_NATIVE_BP_SAVED)
		bp_at = cfa + (__s64)PYBPF_RULE_BP_OFFSET(rule) * NATIVE_WORD;
	/* No frame is at 0: a caller that is found by its frame pointer ends the search. */
	if (PYBPF_RULE_BP(rule) == PYBPF_NATIVE_BP_LOST)
		r->bp = 0;
	if ((bp_at && native_word(memory, bp_at, &r->bp)) || native_word(memory, cfa - NATIVE_WORD, &r->pc))
		return PYBPF_NATIVE_END_FAULT;
	r->sp = cfa;
	r->is_innermost = 0;
	/* Where the C library marks its outermost frame by nothing else. */
	return r->pc ? PYBPF_NATIVE_NOT_ASKED : PYBPF_NATIVE_END_WHOLE;
}

#endif
