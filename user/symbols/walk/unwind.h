// SPDX-License-Identifier: Apache-2.0
/*
 * Native stacks of a process that stands: on x86-64 as the kernel side finds them (native/follow.h); elsewhere, and
 * where that knows no way, by libdw. To be used in a helper process (helper.h): the files are not trusted.
 */
#ifndef SYMBOLS_UNWIND_H
#define SYMBOLS_UNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#if defined(__x86_64__)
#define UNWIND_REGISTERS 17
#define UNWIND_SP        7
#elif defined(__aarch64__)
#define UNWIND_REGISTERS 33
#define UNWIND_SP        31
#endif

/* By DWARF's numbers: on x86-64 rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip; on arm64 x0 to x30, sp, pc. */
struct unwind_registers {
	uint64_t values[UNWIND_REGISTERS];
	/* Only stack pointer and pc are known: where a caller is found by another one, the search for it ends. */
	bool is_partial;
};
/*
 * Returns a word without the signature that arm64 puts into return addresses (pointer authentication): it is in the
 * bits between the program's addresses and bit 55 (Documentation/arch/arm64/pointer-authentication.rst). mapped_end:
 * end of the program's last mapping, which is its stack and so has the length of its addresses.
 */
uint64_t unwind_strip_signature(uint64_t word, uint64_t mapped_end);
/* Takes them from what ptrace(2) and core files have, NT_PRSTATUS. */
struct unwind_registers unwind_registers_from(const struct user_regs_struct *regs);
/*
 * Makes those of a thread that sleeps in the kernel, of which /proc tells the stack pointer and the pc. Returns whether
 * frames can be found by these: not on arm64, where the function that enters the kernel has its return address in a
 * register.
 */
bool unwind_registers_at(uint64_t stack_pointer, uint64_t pc, struct unwind_registers *out);

struct unwind_frame {
	uint64_t pc;      /* where the frame stands; behind a call, of all but the first */
	const char *name; /* of the function; NULL: not known */
	const char *file; /* that it is in, as mapped; NULL: in none, as code that was made at run time */
	bool is_loop;     /* of a function that evaluates Python's frames, also where it has no name; false by libdw */
};

/* How the search for frames ended. */
enum unwind_end {
	UNWIND_WHOLE,     /* the outermost frame was reached */
	UNWIND_BROKEN,    /* how a frame was called is not known: outer ones are missing */
	UNWIND_LIMIT,     /* the taker wanted no more */
	UNWIND_NO_MEMORY, /* before the first frame */
};

struct unwind;
/* Reads the mappings of a process. Returns 0 or negative errno. */
int unwind_new(pid_t pid, struct unwind **out);
void unwind_free(struct unwind *u);

/*
 * Finds the frames of a thread with these registers. is_quick: nothing is done that takes long, as the thread stands
 * meanwhile. Returns false if there is such: unwind_prepare() does it, and then the thread is to be asked for again.
 */
bool unwind_find(struct unwind *u, const struct unwind_registers *registers, bool is_quick);
void unwind_prepare(struct unwind *u);
/* Likewise, by libdw alone. */
void unwind_find_by_libdw(struct unwind *u, const struct unwind_registers *registers);
/*
 * Hands the frames that were found last to take, the innermost first, until it returns false. Texts live until the next
 * call.
 */
enum unwind_end unwind_take(struct unwind *u, bool (*take)(void *arg, const struct unwind_frame *frame), void *arg);

/*
 * Returns the path of a file whose symbols or call frame information were not read, each file once, or NULL. *err: why,
 * -ENOMEM or -EMFILE.
 */
const char *unwind_next_lack(struct unwind *u, int *err);

#endif
