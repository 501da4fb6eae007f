/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Native frames of the current thread: from its registers outwards, by the tables that user space has made of the files
 * that its process maps. Nothing of the Python frames depends on them.
 */
#ifndef PYBPF_NATIVE_BPF_H
#define PYBPF_NATIVE_BPF_H

#include "maps.bpf.h"

/* Stacks have native frames. With bpf_loop and bpf_task_pt_regs() only. */
const volatile bool cfg_native;
/* An enum pybpf_native_exact. */
const volatile __u32 cfg_native_exact;

/*
 * Tables and lists are in pages of chunks: an update of a map of maps waits for all programs that run, which would take
 * longer for each file than its table. User space sets the sizes of these maps. clang describes the types of inner maps
 * by their names alone.
 */
struct native_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PYBPF_NATIVE_CHUNK_PAGES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct pybpf_native_page));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct native_chunk);
} native_chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct pybpf_native_list);
} native_lists SEC(".maps");

#define NATIVE_CHUNK 512
#include "native_search.h"

static __always_inline const struct pybpf_native_page *native_page(const struct native_search *n, __u32 number)
{
	__u32 chunk = number / PYBPF_NATIVE_CHUNK_PAGES, page = number % PYBPF_NATIVE_CHUNK_PAGES;
	void *pages;

	(void)n;
	pages = bpf_map_lookup_elem(&native_chunks, &chunk);

	return pages ? bpf_map_lookup_elem(pages, &page) : NULL;
}

static __always_inline int native_read(struct native_scratch *n, void *dst, __u32 size, __u64 addr)
{
	(void)n;
	return compat_read_user(dst, size, addr) != 0;
}

static __always_inline __u32 native_exact(const struct native_scratch *n)
{
	(void)n;
	return cfg_native_exact;
}

/* One per CPU and context, as struct scratch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct native_scratch);
} native_scratches SEC(".maps");

static __always_inline struct native_scratch *native_scratch_get(enum pybpf_context context)
{
	__u32 place = bpf_get_smp_processor_id() * cfg_contexts + context;

	return bpf_map_lookup_elem(&native_scratches, &place);
}

static long native_loop(__u32 i, struct native_scratch **n)
{
	return is_set(native_next(*n));
}

/*
 * Finds the process's list. Returns 0 without a valid one: another file may be mapped where one was, and
 * the pages of a list that was replaced meanwhile may be another's by now, and have another head.
 */
static __always_inline int native_find_list(struct native_scratch *n, __u64 proc_id)
{
	const struct pybpf_native_list *list = bpf_map_lookup_elem(&native_lists, &proc_id);
	const struct pybpf_native_mapping *head;

	if (!list || list->code_pages != compat_code_pages(compat_task()))
		return 0;
	n->search.list = *list;
	head = native_mapping(&n->search, 0);
	return head && head->start == n->search.list.generation;
}

/* Follows the callers from n->registers on. A global function, so that the verifier goes through it once. */
__noinline int native_follow(__u32 context, __u64 proc_id)
{
	struct native_scratch *n = native_scratch_get(context);

	if (!n)
		return 0;
	native_begin(n);
	if (n->registers.pc && native_find_list(n, proc_id)) {
		n->end = PYBPF_NATIVE_END_LIMIT;
		bpf_loop(PYBPF_NATIVE_FRAMES + 1, native_loop, &n, 0);
	}
	n->hash = walk_mix(n->hash, n->end);
	return 0;
}

/* The stack that is taken next has no native frames. */
static __always_inline void native_forget(struct scratch *s, enum pybpf_context context)
{
	struct native_scratch *n;

	if (!cfg_native)
		return;
	s->context = context;
	s->native_hash = 0;
	n = native_scratch_get(context);
	if (!n)
		return;
	n->nr = 0;
	n->end = PYBPF_NATIVE_NOT_ASKED;
}

/*
 * Takes the native frames of the current thread; s->walk.proc_id and its registers in s->walk.candidates are there.
 * ctx: struct bpf_perf_event_data; NULL: the thread is in the kernel.
 */
static __always_inline void native_take(struct scratch *s, enum pybpf_context context, const void *ctx)
{
	struct native_scratch *n;

	if (!cfg_native)
		return;
	s->context = context;
	s->native_hash = 0;
	n = native_scratch_get(context);
	if (!n)
		return;
	if (ctx)
		compat_place(ctx, &n->registers.pc, &n->registers.sp, &n->registers.bp);
	else
		compat_entry_place(bpf_get_current_task_btf(), &n->registers.pc, &n->registers.sp, &n->registers.bp);
	n->registers.is_innermost = s->nr_registers >= NATIVE_REGISTERS;
	__builtin_memcpy(n->registers.all, s->walk.candidates, NATIVE_REGISTERS * sizeof(__u64));
	native_follow(context, s->walk.proc_id);
	s->native_hash = n->hash;
}

#endif
