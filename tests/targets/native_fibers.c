// SPDX-License-Identifier: Apache-2.0
/*
 * Fibers of makecontext(), and of assembly as libco and boost.context have it: functions that burn time, and that call
 * back into Python, on stacks of their own.
 */
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#define STACK_BYTES (1 << 20)

enum way {
	WAY_MAKECONTEXT,
	WAY_LIBCO,
	WAY_BOOST,
};

/* libco's: where the stack is, and what a function keeps for its caller. */
struct nf_co {
	void *sp, *kept[6];
};

void nf_choose(int way);
void nf_burn(int ms);
int nf_switch(void (*function)(int), int ms);
int nf_burns(int ms);
void nf_co(struct nf_co *to, struct nf_co *from);
void *nf_jump(void *to);
void nf_jump_begin(void);
extern const char nf_jump_finish[];

/* As all assembly of both, without call frame information. */
__asm__(".text\n"
	".type nf_co, @function\n"
	"nf_co:\n"
	"mov %rsp, (%rsi)\n"
	"mov (%rdi), %rsp\n"
	"pop %rax\n"
	"mov %rbp, 8(%rsi)\n"
	"mov %rbx, 16(%rsi)\n"
	"mov %r12, 24(%rsi)\n"
	"mov %r13, 32(%rsi)\n"
	"mov %r14, 40(%rsi)\n"
	"mov %r15, 48(%rsi)\n"
	"mov 8(%rdi), %rbp\n"
	"mov 16(%rdi), %rbx\n"
	"mov 24(%rdi), %r12\n"
	"mov 32(%rdi), %r13\n"
	"mov 40(%rdi), %r14\n"
	"mov 48(%rdi), %r15\n"
	"jmp *%rax\n"
	".size nf_co, . - nf_co\n"
	/* boost.context's: what is kept is on the stack, and a fiber's first function returns to what ends all. */
	".type nf_jump, @function\n"
	"nf_jump:\n"
	"lea -0x30(%rsp), %rsp\n"
	"mov %r12, (%rsp)\n"
	"mov %r13, 0x8(%rsp)\n"
	"mov %r14, 0x10(%rsp)\n"
	"mov %r15, 0x18(%rsp)\n"
	"mov %rbx, 0x20(%rsp)\n"
	"mov %rbp, 0x28(%rsp)\n"
	"mov %rsp, %rax\n"
	"mov %rdi, %rsp\n"
	"mov 0x30(%rsp), %r8\n"
	"mov (%rsp), %r12\n"
	"mov 0x8(%rsp), %r13\n"
	"mov 0x10(%rsp), %r14\n"
	"mov 0x18(%rsp), %r15\n"
	"mov 0x20(%rsp), %rbx\n"
	"mov 0x28(%rsp), %rbp\n"
	"lea 0x38(%rsp), %rsp\n"
	"mov %rax, %rdi\n"
	"jmp *%r8\n"
	".size nf_jump, . - nf_jump\n"
	".type nf_jump_begin, @function\n"
	"nf_jump_begin:\n"
	"push %rbp\n"
	"jmp *%rbx\n"
	"nf_jump_finish:\n"
	"xor %edi, %edi\n"
	"call _exit@PLT\n"
	"hlt\n"
	".size nf_jump_begin, . - nf_jump_begin\n");

static enum way chosen;
static ucontext_t outside, inside;
static struct nf_co outer_co, inner_co;
static void (*work)(int);
static int for_ms;

void nf_choose(int way)
{
	chosen = (enum way)way;
}

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) void nf_burn(int ms)
{
	double end = cpu_s() + ms / 1e3;

	while (cpu_s() < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}

/*
 * before: what boost.context has switched from. What follows a call here keeps the compiler from making a jump of it.
 */
static void nf_fiber(void *before)
{
	work(for_ms);
	if (chosen == WAY_LIBCO)
		nf_co(&outer_co, &inner_co);
	else if (chosen == WAY_BOOST)
		nf_jump(before);
	__asm__ volatile("");
}

static void nf_made_fiber(void)
{
	nf_fiber(NULL);
	__asm__ volatile("");
}

/* A fiber's first function would return to it. */
static void nf_co_crash(void)
{
	abort();
}

static void switch_by_makecontext(char *stack)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, nf_made_fiber, 0);
	swapcontext(&outside, &inside);
}

static void switch_as_libco(void **top)
{
	top[-1] = (void *)nf_co_crash;
	top[-2] = (void *)nf_fiber;
	inner_co.sp = &top[-2];
	nf_co(&inner_co, &outer_co);
}

static void switch_as_boost(void **top)
{
	void **kept = top - 9;

	kept[4] = (void *)nf_fiber;
	kept[5] = (void *)nf_jump_finish;
	kept[6] = (void *)nf_jump_begin;
	nf_jump(kept);
}

/* Returns 0, or 1 without memory. */
__attribute__((noinline)) int nf_switch(void (*function)(int), int ms)
{
	char *stack = malloc(STACK_BYTES);

	if (!stack)
		return 1;
	work = function;
	for_ms = ms;
	if (chosen == WAY_MAKECONTEXT)
		switch_by_makecontext(stack);
	else if (chosen == WAY_LIBCO)
		switch_as_libco((void **)(stack + STACK_BYTES));
	else
		switch_as_boost((void **)(stack + STACK_BYTES));
	free(stack);
	return 0;
}

/* Burns on a fiber. */
int nf_burns(int ms)
{
	int failed = nf_switch(nf_burn, ms);

	__asm__ volatile("" : "+r"(failed));
	return failed;
}
