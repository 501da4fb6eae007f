// SPDX-License-Identifier: Apache-2.0
/*
 * A library for tests of lines: what is inlined into what is known, and on which lines, which carry a mark. Built with
 * -O2 -g, none but nl_go is exported.
 */
#include <time.h>

#define INLINE static inline __attribute__((always_inline))
#define SEEN   static __attribute__((noinline))
/* Keeps the compiler from making the call before a jump, and from taking two places for one. */
#define HERE(number) __asm__ volatile("# " #number ::: "memory")

static volatile unsigned long sink;
/* Not known to the compiler, which would make a copy of a function for it. */
static volatile unsigned long turns = 4000;

INLINE void innermost(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink = sink + i; /* LINE innermost */
}

INLINE void middle(unsigned long n)
{
	HERE(1);
	innermost(n); /* LINE middle */
	HERE(2);
}

/* Inlines the same function at two places. */
SEEN void twice(unsigned long n)
{
	HERE(3);
	middle(n); /* LINE first */
	HERE(4);
	innermost(n); /* LINE second */
	HERE(5);
}

static long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

INLINE void call_twice(unsigned long n)
{
	HERE(6);
	twice(n); /* LINE inlined_caller */
	HERE(7);
}

SEEN void outer(long ms)
{
	long end = cpu_ns() + ms * 1000000;

	do {
		HERE(8);
		call_twice(turns); /* LINE outer */
		HERE(9);
	} while (cpu_ns() < end);
}

__attribute__((visibility("default"))) void nl_go(long ms);
__attribute__((visibility("default"))) void nl_go(long ms)
{
	HERE(10);
	outer(ms); /* LINE go */
	HERE(11);
}
