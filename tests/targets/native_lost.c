// SPDX-License-Identifier: Apache-2.0
/* Assembly that uses the frame pointer for something else, and says that its caller's is nowhere. */
#include <time.h>

void nl_burn(int ms);
void nl_decoy(void);
void nl_outer(int ms);

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline, used)) void nl_burn(int ms)
{
	double end = cpu_s() + ms / 1e3;

	while (cpu_s() < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}

/* nl_lost(ms, frame): calls nl_burn(ms) with the frame pointer at `frame`. */
__asm__(".pushsection .text\n"
	".globl nl_lost\n"
	".hidden nl_lost\n"
	".type nl_lost, @function\n"
	"nl_lost:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_undefined rbp\n"
	"mov %rsi, %rbp\n"
	"call nl_burn@PLT\n"
	"pop %rbp\n"
	".cfi_def_cfa_offset 8\n"
	".cfi_same_value rbp\n"
	"ret\n"
	".cfi_endproc\n"
	".size nl_lost, . - nl_lost\n"
	".popsection\n");
__attribute__((visibility("hidden"))) void nl_lost(int ms, void **frame);

/* Calls nobody. */
__attribute__((noinline)) void nl_decoy(void)
{
	__asm__ volatile("nop; nop; nop; nop");
}

__attribute__((noinline)) static void nl_go(int ms, void **frame)
{
	nl_lost(ms, frame);
	__asm__ volatile("");
}

void nl_outer(int ms)
{
	/* A saved frame pointer, and a return address. */
	void *frame[2] = {frame, (char *)nl_decoy + 4};

	nl_go(ms, frame);
	__asm__ volatile("" : : "r"(frame) : "memory");
}
