/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a thread's registers outwards, by the tables that user space has made of the files that its process maps;
 * written once and compiled twice, as the walk is. The including file defines:
 *
 * NATIVE_CHUNK: bytes of the stack that are read at once, a power of 2. Most hold several frames.
 *
 * native_page(search, number): returns a page, or NULL. With the next call it is not valid any more.
 *
 * native_read(n, dst, size, addr): reads the program's memory. Returns 0 or another number.
 *
 * native_exact(n): an enum pybpf_native_exact.
 */
#ifndef PYBPF_NATIVE_SEARCH_H
#define PYBPF_NATIVE_SEARCH_H

#include "walk_base.h"

#ifndef barrier_var
#define barrier_var(var) __asm__ volatile("" : "+r"(var))
#endif

struct native_search;
struct native_scratch;
static __always_inline const struct pybpf_native_page *native_page(const struct native_search *n, __u32 number);
static __always_inline int native_read(struct native_scratch *n, void *dst, __u32 size, __u64 addr);
static __always_inline int native_word(struct native_scratch *n, __u64 addr, __u64 *out);
static __always_inline __u32 native_exact(const struct native_scratch *n);

#define NATIVE_MEMORY struct native_scratch
#include "native_step.h"

/* A search in a process's list. Not on the stack: the verifier takes limits that lie in a map for any numbers. */
struct native_search {
	struct pybpf_native_list list;
	__u32 low, high;
};

/* What is known of an instruction: programs meet the same ones over and over. */
struct native_memo {
	__u64 pc, generation;
	__u64 frame;
	__u32 rule;
	__u32 file_pc;
};
#define NATIVE_MEMOS 4096

/* Working memory. */
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

/* Reads the chunk from an address on, as far as its page: the next one may not be there. Returns 0, or -1. */
WALK_ONCE int native_fetch(struct native_scratch *n, __u64 addr)
{
	__u64 size;

	if (!n)
		return -1;
	size = WALK_PAGE_MASK + 1 - (addr & WALK_PAGE_MASK);
	if (size > NATIVE_CHUNK)
		size = NATIVE_CHUNK;
	n->chunk_base = addr;
	n->chunk_size = 0;
	if (addr & (NATIVE_WORD - 1) || native_read(n, n->chunk, (__u32)size, addr))
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

/* Searches of 2^14 mappings, 2^16 pages. */
#define NATIVE_MAPPING_STEPS 15
#define NATIVE_PAGE_STEPS    16

/* Returns element i of a process's list. */
static __always_inline const struct pybpf_native_mapping *native_mapping(const struct native_search *n, __u32 i)
{
	const struct pybpf_native_page *page = native_page(n, n->list.first + i / PYBPF_NATIVE_PAGE_MAPPINGS);

	return page ? &page->mappings[i % PYBPF_NATIVE_PAGE_MAPPINGS] : NULL;
}

/* Sets n->low to the number of mappings that begin at the address or before it. */
WALK_ONCE int native_count_mappings(struct native_search *n, __u64 address)
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

/* Returns the mapping that has an address, or NULL. */
static __always_inline const struct pybpf_native_mapping *native_mapping_of(struct native_search *n, __u64 address)
{
	const struct pybpf_native_mapping *m;

	native_count_mappings(n, address);
	m = n->low ? native_mapping(n, n->low) : NULL;
	return m && address - m->start < m->size ? m : NULL;
}

/* Sets n->low to the number of pages of a table that begin at the pc or before it. */
WALK_ONCE int native_count_pages(struct native_search *n, __u32 first, __u32 pages, __u32 pc)
{
	if (!n)
		return 0;
	n->low = 0;
	n->high = pages;
	for (int i = 0; i < NATIVE_PAGE_STEPS && n->low < n->high; i++) {
		__u32 middle = n->low + (n->high - n->low) / 2;
		const struct pybpf_native_page *page = native_page(n, first + middle);

		if (!page)
			break;
		if (page->rows[0].pc <= pc)
			n->low = middle + 1;
		else
			n->high = middle;
	}
	return 0;
}

/*
 * Returns whether frames tell an instruction from the others of its row. A row without a rule is not one function's: it
 * begins behind the last function that has one, and may have any number of others in it.
 */
static __always_inline bool native_is_exact(const struct native_scratch *n, __u32 rule)
{
	return native_exact(n) == PYBPF_NATIVE_EXACT_ALL || PYBPF_RULE_KIND(rule) == PYBPF_NATIVE_NONE ||
	       (native_exact(n) == PYBPF_NATIVE_EXACT && !(rule & PYBPF_RULE_EVAL));
}

/*
 * Whether a frame would return to where a row begins: behind a call that never returns, or where nothing was called, as
 * makecontext() has it. Then what lies before that address may be what aligns the function, and no part of the former.
 */
static __always_inline bool native_is_at_end(const struct native_scratch *n, const struct pybpf_native_page *page,
					     __u32 row, __u32 pc)
{
	return !n->exact && page->rows[(row + 1) & (PYBPF_NATIVE_PAGE_ROWS - 1)].pc == pc + 1;
}

/* Finds the row of a pc in a page. Fills in n->found. Returns 0 when there is no such page. */
WALK_ONCE int native_find_row(struct native_scratch *n, __u32 file, __u32 number, __u32 pc)
{
	const struct pybpf_native_page *page = n ? native_page(&n->search, number) : NULL;
	__u32 low = 0;

	if (!page)
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
	n->found.frame = PYBPF_NATIVE_FRAME(
		file,
		native_is_exact(n, n->found.rule) || native_is_at_end(n, page, low, pc) ? pc : page->rows[low].pc);
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
WALK_ONCE int native_look_up(struct native_scratch *n, __u64 address)
{
	const struct pybpf_native_mapping *m;
	__u32 file, first, pages, pc;

	if (!n)
		return PYBPF_NATIVE_END_NO_MAPPING;
	m = native_mapping_of(&n->search, address);
	if (!m)
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

static __always_inline bool native_is_sigreturn(struct native_scratch *n, __u64 pc)
{
	__u64 code[2] = {};

	return !native_read(n, code, 9, pc) && code[0] == NATIVE_SIGRETURN_1 && (__u8)code[1] == NATIVE_SIGRETURN_2;
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
	if (end == PYBPF_NATIVE_END_NO_ROW && native_is_sigreturn(n, n->registers.pc)) {
		n->found.rule = PYBPF_NATIVE_SIGNAL;
		return PYBPF_NATIVE_NOT_ASKED;
	}
	if (end == PYBPF_NATIVE_NOT_ASKED)
		n->memos[place] = n->found;
	return end;
}

/* Bytes from the opcode of `call *operand` to its end: the operand has 1, 2, 3, 5 or 6. */
#define NATIVE_IS_CALL(code, size)                                                                                     \
	(((code) >> (64 - 8 * (size)) & 0xff) == 0xff && ((code) >> (64 - 8 * ((size)-1) + 3) & 7) == 2)
#define NATIVE_CALL_SIZE 5 /* of call and a distance */

/* Returns 1 if the bytes before an address are a call (Intel SDM, volume 2), which then may return there. */
WALK_ONCE int native_is_behind_call(struct native_scratch *n, __u64 pc)
{
	__u64 code = 0;

	if (!n || native_read(n, &code, sizeof(code), pc - sizeof(code)))
		return 0;
	return (code >> (64 - 8 * NATIVE_CALL_SIZE) & 0xff) == 0xe8 || NATIVE_IS_CALL(code, 2) ||
	       NATIVE_IS_CALL(code, 3) || NATIVE_IS_CALL(code, 4) || NATIVE_IS_CALL(code, 6) || NATIVE_IS_CALL(code, 7);
}

/* Goes to the caller by n->found. Returns NOT_ASKED, or how the search ends. */
static __always_inline int native_leave(struct native_scratch *n)
{
	int end = native_step(n, &n->registers, n->found.rule, n->found.file_pc + !n->exact);

	if (n->found.rule & PYBPF_RULE_CHECKED && (end == PYBPF_NATIVE_NOT_ASKED || end == PYBPF_NATIVE_END_WHOLE) &&
	    (!native_is_behind_call(n, n->registers.pc) || !native_mapping_of(&n->search, n->registers.pc - 1)))
		return PYBPF_NATIVE_END_NO_ROW;
	return end;
}

/* Keeps one frame and goes to its caller. Returns 1 when the search has ended. */
WALK_ONCE int native_next(struct native_scratch *n)
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
		end = native_leave(n);
		/* A signal interrupts anywhere. */
		n->exact = PYBPF_RULE_KIND(n->found.rule) == PYBPF_NATIVE_SIGNAL;
	}
	n->end = (__u32)end;
	return end != PYBPF_NATIVE_NOT_ASKED;
}

/* Begins at n->registers. */
static __always_inline void native_begin(struct native_scratch *n)
{
	n->nr = 0;
	n->hash = 0;
	n->exact = 1;
	n->chunk_size = 0;
	n->end = n->registers.pc ? PYBPF_NATIVE_END_NO_MAPPINGS : PYBPF_NATIVE_END_NO_REGISTERS;
}

#endif
