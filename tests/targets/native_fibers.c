// SPDX-License-Identifier: Apache-2.0
/* Fibers of makecontext(): functions that burn time, and that call back into Python, on stacks of their own. */
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#define STACK_BYTES (1 << 20)

void nf_burn(int ms);
int nf_switch(void (*function)(int), int ms);
int nf_burns(int ms);

static ucontext_t outside, inside;
static void (*work)(int);
static int for_ms;

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

/* What follows a call here keeps the compiler from making a jump of it. */
static void nf_fiber(void)
{
	work(for_ms);
	__asm__ volatile("");
}

/* Returns 0, or 1 without memory. */
__attribute__((noinline)) int nf_switch(void (*function)(int), int ms)
{
	void *stack = malloc(STACK_BYTES);

	if (!stack)
		return 1;
	work = function;
	for_ms = ms;
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, nf_fiber, 0);
	swapcontext(&outside, &inside);
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
