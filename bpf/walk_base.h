/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the walk of Python's frames and the search for native ones have in common. */
#ifndef PYBPF_WALK_BASE_H
#define PYBPF_WALK_BASE_H

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
/*
 * A function that the verifier goes through once, and not once for each path that leads to it: a global one. So it must
 * do with any arguments, and returns a number.
 */
#ifdef __bpf__
#define WALK_ONCE __attribute__((noinline))
#else
#define WALK_ONCE static __attribute__((noinline))
#endif

/* The offset within a page, of the smallest size. */
#define WALK_PAGE_MASK 4095

/* Odd constants of full avalanche under multiply and shift (splitmix64's finalizer, Steele et al. 2014). */
static __always_inline __u64 walk_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0xbf58476d1ce4e5b9ULL;
	return hash ^ (hash >> 29);
}

#endif
