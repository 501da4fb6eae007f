// SPDX-License-Identifier: Apache-2.0
/*
 * A library whose chains of calls are known, of functions that are hard to see through: they align their stack by a
 * register of their own (r10), stand beside each other, and are reached by a table only. Only nu_go is exported. Built
 * with and without call frame information.
 */
#include <time.h>

#define SEEN static __attribute__((noinline))
/* Makes each function another one, whose call is no jump. */
#define HERE(name)  __asm__ volatile("# " #name ::: "memory")
#define KEEP(thing) __asm__ volatile("" ::"r"(thing) : "memory")

static volatile double sink;
/* Not known to the compiler, which would make a copy of a function for it. */
static volatile unsigned long turns = 4000;

SEEN void leaf(void)
{
	for (unsigned long i = 0; i < turns; i++)
		sink = sink + (double)i;
	HERE(leaf);
}

/* A frame whose size is not known, and whose stack is aligned. */
#define ALIGNED(name)                                                                                                  \
	SEEN void name(int size)                                                                                       \
	{                                                                                                              \
		char *bytes = __builtin_alloca((unsigned long)size);                                                   \
		volatile double aligned[8] __attribute__((aligned(64)));                                               \
                                                                                                                       \
		aligned[0] = size;                                                                                     \
		bytes[0] = 1;                                                                                          \
		KEEP(bytes);                                                                                           \
		KEEP(aligned);                                                                                         \
		leaf();                                                                                                \
		HERE(name);                                                                                            \
	}

ALIGNED(aligned_one)
ALIGNED(aligned_two)
ALIGNED(aligned_three)

SEEN void plain(int size)
{
	leaf();
	sink = size;
	HERE(plain);
}

static void (*volatile const table[])(int) = {aligned_one, aligned_two, aligned_three, plain};

static long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((visibility("default"))) void nu_go(int which, long ms);
__attribute__((visibility("default"))) void nu_go(int which, long ms)
{
	long end = cpu_ns() + ms * 1000000;

	do {
		table[which](100);
		HERE(nu_go);
	} while (cpu_ns() < end);
}
