/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The resident memory of processes, in bytes, by the stack that makes it grow (--mode=memory). The kernel tells the
 * size of each of a memory's counters when it changes. What it has grown by since it was told last is the value of a
 * sample; what it has shrunk by is summed. So all values, less that sum, are the growth of the process, whatever event
 * was missed.
 */
#ifndef PYBPF_MEMORY_BPF_H
#define PYBPF_MEMORY_BPF_H

#include "maps.bpf.h"

/* Counters of struct mm_struct (include/linux/mm_types_task.h): file, anonymous, swap, shared; RSS is without swap. */
#define MEMORY_COUNTERS 4
#define MEMORY_SWAP     2

struct memory_key {
	__u64 proc_id;
	__u64 mm_id; /* during an exec, the process has that of the new program first */
};

struct memory_size {
	/* Bytes by counter, plus 1; 0: not told yet. */
	__u64 told[MEMORY_COUNTERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct memory_key);
	__type(value, struct memory_size);
} memory_sizes SEC(".maps");

/* Bytes that chosen Python processes gave back. */
__u64 memory_given_back;

/*
 * Returns the bytes by which the current process has grown since the counter was told last, or, if it has shrunk, a
 * negative number; 0 the first time.
 */
static __always_inline __s64 memory_growth(__u64 proc_id, const struct trace_event_raw_rss_stat *told)
{
	const struct memory_key key = {proc_id, told->mm_id};
	const struct memory_size none = {};
	__u32 counter = told->member;
	struct memory_size *seen;
	__u64 size = told->size, before;

	if (!told->curr || counter >= MEMORY_COUNTERS || counter == MEMORY_SWAP)
		return 0;
	seen = bpf_map_lookup_elem(&memory_sizes, &key);
	if (!seen) {
		bpf_map_update_elem(&memory_sizes, &key, &none, BPF_NOEXIST);
		seen = bpf_map_lookup_elem(&memory_sizes, &key);
	}
	if (!seen)
		return 0;
	before = __sync_lock_test_and_set(&seen->told[counter], size + 1);
	return before ? (__s64)(size + 1 - before) : 0;
}

#endif
