/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The resident memory of processes, in bytes, by the stack that makes it grow (--mode=memory). The kernel tells the
 * size of each of a memory's counters when it changes. What it has grown by since it was told last is the value of a
 * sample; what it has shrunk by is summed. So all values, less that sum, are the growth of the process, whatever event
 * was missed.
 *
 * Where the memory is that grows or shrinks (cfg_held): a page fault tells its address before the counter changes. Else
 * the thread's system call says the range. The registers with which the thread entered the kernel say which of the two
 * it is.
 */
#ifndef PYBPF_MEMORY_BPF_H
#define PYBPF_MEMORY_BPF_H

#include "announce.bpf.h"
#include "maps.bpf.h"

/* Counters of struct mm_struct (include/linux/mm_types_task.h): file, anonymous, swap, shared; RSS is without swap. */
#define MEMORY_COUNTERS  4
#define MEMORY_FILE      0
#define MEMORY_ANONYMOUS 1
#define MEMORY_SWAP      2

/* include/uapi/asm-generic/mman-common.h */
#define MAP_FIXED            0x10
#define MADV_DONTNEED        4
#define MADV_REMOVE          9
#define MADV_POPULATE_READ   22
#define MADV_POPULATE_WRITE  23
#define MADV_DONTNEED_LOCKED 24

/* Results of system calls from here on are errors (MAX_ERRNO, include/linux/err.h). */
#define FIRST_ERROR ((__u64)-4095)

struct memory_key {
	__u64 proc_id;
	__u64 mm_id; /* during an exec, the process has that of the new program first */
};

struct memory_size {
	/* Bytes by counter, plus 1; 0: not told yet. */
	__u64 reported[MEMORY_COUNTERS];
	__u64 heap_end; /* no page that was touched below the end of the heap (mm->brk) is behind it */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct memory_key);
	__type(value, struct memory_size);
} memory_sizes SEC(".maps");

/* What is known of a thread, by its TID. */
struct memory_thread {
	__u64 proc_id;
	__u64 fault;     /* address of the last page fault */
	__u32 in_kernel; /* that fault: a system call touched the page; fault is 0 once its page is known */
	__u32 populated; /* its mmap() has made memory resident */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct memory_thread);
} memory_threads SEC(".maps");

/* Filled by user space. */
const volatile struct pybpf_memory_calls cfg_memory_calls;

/* Bytes that chosen Python processes gave back. */
__u64 memory_given_back;

/* Returns what is known of the current process's memory; NULL if it is not its own that changes. */
static __always_inline struct memory_size *memory_find(__u64 proc_id, const struct trace_event_raw_rss_stat *stat)
{
	const struct memory_key key = {proc_id, stat->mm_id};
	const struct memory_size none = {};
	struct memory_size *seen;

	if (!stat->curr)
		return NULL;
	seen = bpf_map_lookup_elem(&memory_sizes, &key);
	if (seen)
		return seen;
	bpf_map_update_elem(&memory_sizes, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&memory_sizes, &key);
}

/*
 * Puts the bytes by which the counter has grown since it was told last into *growth; if it has shrunk, a negative
 * number. Returns false the first time.
 */
static __always_inline bool memory_grow(struct memory_size *seen, const struct trace_event_raw_rss_stat *stat,
					__s64 *growth)
{
	__u32 counter = stat->member;
	__u64 size = stat->size, before;

	if (counter >= MEMORY_COUNTERS || counter == MEMORY_SWAP)
		return false;
	before = __sync_lock_test_and_set(&seen->reported[counter], size + 1);
	*growth = (__s64)(size + 1 - before);
	return before;
}

/* Returns what is known of the current thread, and makes it; NULL without room. */
static __always_inline struct memory_thread *memory_thread_of(__u64 proc_id)
{
	const struct memory_thread none = {.proc_id = proc_id};
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct memory_thread *thread = bpf_map_lookup_elem(&memory_threads, &tid);

	if (thread && thread->proc_id == proc_id)
		return thread;
	bpf_map_update_elem(&memory_threads, &tid, &none, BPF_ANY);
	return bpf_map_lookup_elem(&memory_threads, &tid);
}

/* Says which range a system call's change is in, and what it is; what stays 0 if that is not known. */
static __always_inline void memory_range_of(const struct compat_syscall *call, const struct memory_size *seen,
					    bool grown, struct pybpf_memory_event *range)
{
	range->start = call->args[0];
	range->length = call->args[1];
	if (call->number == cfg_memory_calls.munmap) {
		range->what = PYBPF_MEMORY_GIVEN_BACK;
	} else if (call->number == cfg_memory_calls.madvise) {
		if (call->args[2] == MADV_DONTNEED || call->args[2] == MADV_REMOVE ||
		    call->args[2] == MADV_DONTNEED_LOCKED)
			range->what = PYBPF_MEMORY_GIVEN_BACK;
		else if (grown && (call->args[2] == MADV_POPULATE_READ || call->args[2] == MADV_POPULATE_WRITE))
			range->what = PYBPF_MEMORY_POPULATED;
	} else if (call->number == cfg_memory_calls.mmap) {
		if (grown)
			range->length = 0;
		if (grown || call->args[3] & MAP_FIXED)
			range->what = grown ? PYBPF_MEMORY_POPULATED : PYBPF_MEMORY_GIVEN_BACK;
	} else if (call->number == cfg_memory_calls.mremap) {
		if (grown || call->args[2] >= call->args[1])
			return;
		range->start += call->args[2];
		range->length -= call->args[2];
		range->what = PYBPF_MEMORY_GIVEN_BACK;
	} else if (call->number == cfg_memory_calls.brk) {
		if (grown || seen->heap_end <= range->start)
			return;
		range->length = seen->heap_end - range->start;
		range->what = PYBPF_MEMORY_GIVEN_BACK;
	} else if (grown && (call->number == cfg_memory_calls.mlock || call->number == cfg_memory_calls.mlock2)) {
		range->what = PYBPF_MEMORY_POPULATED;
	}
}

/* Returns whether the call is one of those that say the range of what they change, or that it is not known. */
static __always_inline bool memory_changes_maps(__s64 call)
{
	return call == cfg_memory_calls.munmap || call == cfg_memory_calls.madvise || call == cfg_memory_calls.mmap ||
	       call == cfg_memory_calls.mremap || call == cfg_memory_calls.brk || call == cfg_memory_calls.mlock ||
	       call == cfg_memory_calls.mlock2;
}

/* Says where the page is that the thread touches, if the page fault is known. */
static __always_inline void memory_locate_fault(struct memory_thread *thread, struct memory_size *seen, bool in_kernel,
						struct pybpf_memory_event *touch)
{
	__u64 heap_end = BPF_CORE_READ(compat_task(), mm, brk);

	if (!thread->fault || thread->in_kernel != in_kernel)
		return;
	touch->what = PYBPF_MEMORY_TOUCHED;
	touch->start = thread->fault;
	if (touch->start < heap_end && heap_end > seen->heap_end)
		seen->heap_end = heap_end;
	/* The next change in this thread may be one without a fault; faults of the program are told apart by its
	 * registers. */
	if (in_kernel)
		thread->fault = 0;
}

/*
 * Says in s->touch where the process has grown, or sends where it has shrunk. Returns whether memory was touched: if
 * two threads touch memory in the same moment, one of them is told the growth of both, and the other one none. So a
 * fault that changes the counter of anonymous pages has touched a page, whatever the growth.
 */
static __always_inline bool memory_locate(struct scratch *s, __u64 proc_id, struct memory_size *seen, __u32 counter,
					  __s64 growth)
{
	struct pybpf_memory_event *touch = &s->touch;
	struct memory_thread *thread = memory_thread_of(proc_id);
	struct compat_syscall call;

	__builtin_memset(touch, 0, sizeof(*touch));
	if (!thread)
		return growth > 0;
	compat_read_syscall(compat_task(), &call);
	touch->tid = (__u32)bpf_get_current_pid_tgid();
	touch->bytes = growth > 0 ? growth : 0;
	touch->anonymous = counter == MEMORY_ANONYMOUS;
	if (call.number >= 0 && memory_changes_maps(call.number)) {
		memory_range_of(&call, seen, growth > 0, touch);
		if (touch->what == PYBPF_MEMORY_GIVEN_BACK) {
			touch->key.thread.proc_id = proc_id;
			send_memory(touch);
			touch->what = 0;
		}
		if (touch->what && !touch->length)
			thread->populated = 1;
		return growth > 0;
	}
	if (growth <= 0 && counter != MEMORY_ANONYMOUS)
		return false;
	memory_locate_fault(thread, seen, call.number >= 0, touch);
	return growth > 0 || touch->what;
}

/* Keeps the address of a page fault of a Python that is sampled. */
static __always_inline void memory_keep_fault(__u64 address, bool in_kernel)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct memory_thread *thread;

	if (!proc || proc->state != PYBPF_PROC_READY)
		return;
	thread = memory_thread_of(proc->proc_id);
	if (!thread)
		return;
	thread->fault = address;
	thread->in_kernel = in_kernel;
}

/* Sends what a system call that has ended has mapped: where it moved memory, or where it made it resident. */
static __always_inline void memory_map(__u64 result)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct scratch *s = scratch_get(PYBPF_CONTEXT_EVENT);
	struct memory_thread *thread;
	struct compat_syscall call;

	if (!s || !proc || proc->state != PYBPF_PROC_READY || result >= FIRST_ERROR)
		return;
	compat_read_syscall(compat_task(), &call);
	__builtin_memset(&s->touch, 0, sizeof(s->touch));
	s->touch.tid = (__u32)bpf_get_current_pid_tgid();
	s->touch.key.thread.proc_id = proc->proc_id;
	if (call.number == cfg_memory_calls.mremap) {
		s->touch.what = PYBPF_MEMORY_MOVED;
		s->touch.start = call.args[0];
		s->touch.length = call.args[1] < call.args[2] ? call.args[1] : call.args[2];
		s->touch.target = result;
		if (result != call.args[0])
			send_memory(&s->touch);
		return;
	}
	thread = memory_thread_of(proc->proc_id);
	if (!thread || !thread->populated)
		return;
	thread->populated = 0;
	s->touch.what = PYBPF_MEMORY_MAPPED;
	s->touch.start = result;
	s->touch.length = call.args[1];
	send_memory(&s->touch);
}

#endif
