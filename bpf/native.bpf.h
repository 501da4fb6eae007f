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

/* A search in a process's list. In map memory, or in a caller's, so that the verifier takes the limits for any numbers.
 */
struct native_search {
	struct pybpf_native_list list;
	__u32 low, high;
};

static __always_inline const struct pybpf_native_page *native_page(__u32 number)
{
	__u32 chunk = number / PYBPF_NATIVE_CHUNK_PAGES, page = number % PYBPF_NATIVE_CHUNK_PAGES;
	void *pages = bpf_map_lookup_elem(&native_chunks, &chunk);

	return pages ? bpf_map_lookup_elem(pages, &page) : NULL;
}

/* What is known of an instruction: programs meet the same ones over and over. */
struct native_memo {
	__u64 pc, generation;
	__u64 frame;
	__u32 rule;
	__u32 file_pc;
};
#define NATIVE_MEMOS 4096

/* Bytes of the stack that are read at once: most hold several frames. */
#define NATIVE_CHUNK 512

#define NATIVE_MEMORY struct native_scratch
struct native_scratch;
static __always_inline int native_word(struct native_scratch *n, __u64 addr, __u64 *out);
#include "native_step.h"

/* Working memory, one per CPU and context, as struct scratch. */
struct native_scratch {
	struct native_registers registers;
	struct native_search search; /* of the process's mappings; low and high serve other searches, too */
	__u64 hash;
	__u32 nr;
	__u32 end;   /* enum pybpf_native_end */
	__u32 exact; /* the pc is that of an instruction, and not where a call returns to */
	__u32 pad;
	__u64 chunk_base; /* where the chunk was read */
	__u64 chunk_size; /* bytes that were */
	struct native_memo found;
	__u64 frames[PYBPF_NATIVE_FRAMES];
	struct native_memo memos[NATIVE_MEMOS];
	__u8 chunk[NATIVE_CHUNK];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct native_scratch);
} native_scratches SEC(".maps");

static __always_inline struct native_scratch *native_scratch_get(enum pybpf_context context)
{
	__u32 place = context * cfg_cpus + bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&native_scratches, &place);
}

/* Reads the chunk from an address on, as far as its page: the next one may not be there. Returns 0, or -1. */
__noinline int native_fetch(struct native_scratch *n, __u64 addr)
{
	__u64 size;

	if (!n)
		return -1;
	size = WALK_PAGE_MASK + 1 - (addr & WALK_PAGE_MASK);
	if (size > NATIVE_CHUNK)
		size = NATIVE_CHUNK;
	n->chunk_base = addr;
	n->chunk_size = 0;
	if (addr & (NATIVE_WORD - 1) || compat_read_user(n->chunk, (__u32)size, addr))
		return -1;
	n->chunk_size = size;
	return 0;
}

static __always_inline int native_word(struct native_scratch *n, __u64 addr, __u64 *out)
{
	__u64 at = addr - n->chunk_base;

	if (at >= n->chunk_size || at & (NATIVE_WORD - 1)) {
		if (native_fetch(n, addr))
			return -1;
		at = 0;
	}
	barrier_var(at);
	*out = *(__u64 *)(n->chunk + (at & (NATIVE_CHUNK - NATIVE_WORD)));
	return 0;
}

/* Searches of 2^14 mappings, 2^16 pages, 512 rows. */
#define NATIVE_MAPPING_STEPS 15
#define NATIVE_PAGE_STEPS    16
#define NATIVE_ROW_STEPS     9

/* Returns element i of a process's list. */
static __always_inline const struct pybpf_native_mapping *native_mapping(const struct native_search *n, __u32 i)
{
	const struct pybpf_native_page *page = native_page(n->list.first + i / PYBPF_NATIVE_PAGE_MAPPINGS);

	return page ? &page->mappings[i % PYBPF_NATIVE_PAGE_MAPPINGS] : NULL;
}

/* Sets n->low to the number of mappings that begin at the address or before it. */
__noinline int native_count_mappings(struct native_search *n, __u64 address)
{
	if (!n)
		return 0;
	n->low = 0;
	n->high = n->list.count;
	for (int i = 0; i < NATIVE_MAPPING_STEPS && n->low < n->high; i++) {
		__u32 middle = n->low + (n->high - n->low) / 2;
		const struct pybpf_native_mapping *m = native_mapping(n, middle + 1);

		if (!m)
			break;
		if (m->start <= address)
			n->low = middle + 1;
		else
			n->high = middle;
	}
	return 0;
}

/* Sets n->low to the number of pages of a table that begin at the pc or before it. */
__noinline int native_count_pages(struct native_search *n, __u32 first, __u32 pages, __u32 pc)
{
	if (!n)
		return 0;
	n->low = 0;
	n->high = pages;
	for (int i = 0; i < NATIVE_PAGE_STEPS && n->low < n->high; i++) {
		__u32 middle = n->low + (n->high - n->low) / 2;
		const struct pybpf_native_page *page = native_page(first + middle);

		if (!page)
			break;
		if (page->rows[0].pc <= pc)
			n->low = middle + 1;
		else
			n->high = middle;
	}
	return 0;
}

/* Finds the row of a pc in a page. Fills in n->found. Returns 0 when there is no such page. */
__noinline int native_find_row(struct native_scratch *n, __u32 file, __u32 number, __u32 pc)
{
	const struct pybpf_native_page *page = native_page(number);
	__u32 low = 0;

	if (!n || !page)
		return 0;
	/* The first row is not behind the pc: half of what is left is added as long as that holds. */
	for (__u32 half = PYBPF_NATIVE_PAGE_ROWS / 2; half; half /= 2) {
		__u32 next = (low + half) & (PYBPF_NATIVE_PAGE_ROWS - 1);

		if (page->rows[next].pc <= pc)
			low = next;
		barrier_var(low);
	}
	low &= PYBPF_NATIVE_PAGE_ROWS - 1;
	n->found.rule = page->rows[low].rule;
	n->found.frame = PYBPF_NATIVE_FRAME(file, page->rows[low].pc);
	if (n->found.rule & PYBPF_RULE_EVAL)
		n->found.frame |= PYBPF_NATIVE_FRAME_EVAL;
	return 1;
}

/* What there is of an instruction when there is no row. */
static __always_inline int native_without_row(struct native_scratch *n, __u32 file, __u32 pc, enum pybpf_native_end end)
{
	n->found.frame = file ? PYBPF_NATIVE_FRAME(file, pc) : 0;
	return end;
}

/* Finds the rule of an instruction in the process's files. Returns NOT_ASKED, or how the search ends. */
__noinline int native_look_up(struct native_scratch *n, __u64 address)
{
	const struct pybpf_native_mapping *m;
	__u32 file, first, pages, pc;

	if (!n)
		return PYBPF_NATIVE_END_NO_MAPPING;
	native_count_mappings(&n->search, address);
	m = n->search.low ? native_mapping(&n->search, n->search.low) : NULL;
	if (!m || address - m->start >= m->size)
		return native_without_row(n, 0, 0, PYBPF_NATIVE_END_NO_MAPPING);
	file = m->file;
	first = m->first;
	pages = m->pages;
	pc = (__u32)(address - m->bias);
	n->found.file_pc = pc;
	if (!pages)
		return native_without_row(n, file, pc, PYBPF_NATIVE_END_NO_ROW);
	if (first == PYBPF_NATIVE_NO_PAGE)
		return native_without_row(n, file, pc, PYBPF_NATIVE_END_NO_TABLE);
	native_count_pages(&n->search, first, pages, pc);
	if (!n->search.low || !native_find_row(n, file, first + n->search.low - 1, pc))
		return native_without_row(n, file, pc, PYBPF_NATIVE_END_NO_ROW);
	return PYBPF_NATIVE_NOT_ASKED;
}

/* mov $15, %rax; syscall: what signal handlers return to, in C libraries that say nothing of it. */
#define NATIVE_SIGRETURN_1 0x0f0000000fc0c748ull
#define NATIVE_SIGRETURN_2 0x05

static __always_inline bool native_is_sigreturn(__u64 pc)
{
	__u64 code[2] = {};

	return !compat_read_user(code, 9, pc) && code[0] == NATIVE_SIGRETURN_1 && (__u8)code[1] == NATIVE_SIGRETURN_2;
}

static __always_inline __u32 native_memo_place(const struct native_scratch *n, __u64 address)
{
	__u32 place = (__u32)(walk_mix(n->search.list.generation, address) >> 32);

	/* Masked last, so that the verifier of 6.1 knows its bounds. */
	barrier_var(place);
	return place & (NATIVE_MEMOS - 1);
}

/* As native_look_up, for the instruction of the frame that has been reached; by the memo, if that knows it. */
static __always_inline int native_find_rule(struct native_scratch *n)
{
	/* A call may be its function's last instruction: then it would return to the next function. */
	__u64 address = n->registers.pc - !n->exact;
	__u32 place = native_memo_place(n, address);
	int end;

	if (n->memos[place].pc == address && n->memos[place].generation == n->search.list.generation) {
		n->found = n->memos[place];
		return PYBPF_NATIVE_NOT_ASKED;
	}
	n->found.pc = address;
	n->found.generation = n->search.list.generation;
	end = native_look_up(n, address);
	if (end == PYBPF_NATIVE_END_NO_ROW && native_is_sigreturn(n->registers.pc)) {
		n->found.rule = PYBPF_NATIVE_SIGNAL;
		return PYBPF_NATIVE_NOT_ASKED;
	}
	if (end == PYBPF_NATIVE_NOT_ASKED)
		n->memos[place] = n->found;
	return end;
}

/* Keeps one frame and goes to its caller. Returns 1 when the search has ended. */
__noinline int native_next(struct native_scratch *n)
{
	int end;

	if (!n)
		return 1;
	if (n->nr >= PYBPF_NATIVE_FRAMES) {
		n->end = PYBPF_NATIVE_END_LIMIT;
		return 1;
	}
	end = native_find_rule(n);
	n->frames[n->nr & (PYBPF_NATIVE_FRAMES - 1)] = n->found.frame;
	n->hash = walk_mix(n->hash, n->found.frame);
	n->nr++;
	if (end == PYBPF_NATIVE_NOT_ASKED) {
		end = native_step(n, &n->registers, n->found.rule, n->found.file_pc + !n->exact);
		/* A signal interrupts anywhere. */
		n->exact = PYBPF_RULE_KIND(n->found.rule) == PYBPF_NATIVE_SIGNAL;
	}
	n->end = (__u32)end;
	return end != PYBPF_NATIVE_NOT_ASKED;
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
	n->nr = 0;
	n->hash = 0;
	n->exact = 1;
	n->chunk_size = 0;
	n->end = n->registers.pc ? PYBPF_NATIVE_END_NO_MAPPINGS : PYBPF_NATIVE_END_NO_REGISTERS;
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
 * Takes the native frames of the current thread; s->walk.proc_id is there. ctx: struct bpf_perf_event_data; NULL: the
 * thread is in the kernel.
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
		compat_entry_place(&n->registers.pc, &n->registers.sp, &n->registers.bp);
	native_follow(context, s->walk.proc_id);
	s->native_hash = n->hash;
}

#endif
