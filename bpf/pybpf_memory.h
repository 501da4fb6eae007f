/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Changes of a process's resident memory (--mode=memory). */
#ifndef PYBPF_MEMORY_H
#define PYBPF_MEMORY_H

#include "pybpf_counts.h"

/* What happened to a range of a process's memory. Bounds that are inside of a page are rounded up. */
enum pybpf_memory_what {
	PYBPF_MEMORY_TOUCHED = 1, /* the page at start became resident and, with it, `bytes` of what is around it */
	PYBPF_MEMORY_POPULATED,   /* `bytes` became resident in the range; length 0: in that of the thread's next MAPPED
				   */
	PYBPF_MEMORY_MAPPED,      /* see POPULATED */
	PYBPF_MEMORY_GIVEN_BACK,
	PYBPF_MEMORY_MOVED, /* to target */
};

/*
 * One change of a process's resident memory. Records of a range are in the order of the changes: those of one that is
 * touched or given back are sent while the kernel holds the lock under which it changes the page tables.
 */
struct pybpf_memory_event {
	struct pybpf_event event;
	__u32 what; /* enum pybpf_memory_what */
	__u32 tid;
	__u64 start, length;
	union {
		__u64 bytes;
		__u64 target;
	};
	__u32 anonymous; /* TOUCHED: these are no pages of files, nor shared ones */
	__u32 pad;
	struct pybpf_count_key key; /* of who touched it; else only its process is valid */
};
_Static_assert(sizeof(struct pybpf_memory_event) == 80, "pybpf_memory_event has no hidden padding");

/* Numbers of the system calls that change the memory of their process. */
struct pybpf_memory_calls {
	__s64 mmap, munmap, mremap, madvise, brk, mlock, mlock2;
};

#endif
