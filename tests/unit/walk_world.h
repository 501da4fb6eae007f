// SPDX-License-Identifier: Apache-2.0
/* Memory that tests of the walk make: interpreters, threads, frames and code objects of every layout. */
#ifndef WALK_WORLD_H
#define WALK_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cpython/layout.h"
#include "known_pythons.h"
#include "symbols/walk/walk_user.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define NO                PYBPF_NO_OFFSET

/* One mapped range, from ARENA_BASE on to where the last object ends. */
#define ARENA_BASE 0x7f1200000000ULL
#define ARENA_SIZE (24u << 20)
#define UNMAPPED   0x7f9900000000ULL

#define CODE_TYPE 0x555500001000ULL
#define THREAD    0x7f4444444740ULL
#define THREAD_2  0x7f4444445740ULL

/* Room behind what is read of a thread state for its own cframe (3.11, 3.12). */
#define ROOT_CFRAME 32

struct world {
	struct pybpf_layout l;
	const char *origin;
	struct pybpf_runtime proc;
	uint8_t *bytes;
	size_t used;
	uint64_t reads;
};

static inline int world_read(void *source, uint64_t addr, void *dst, size_t size)
{
	struct world *w = source;

	w->reads++;
	if (addr < ARENA_BASE || addr - ARENA_BASE > w->used || size > w->used - (addr - ARENA_BASE))
		return -EFAULT;
	memcpy(dst, w->bytes + (addr - ARENA_BASE), size);
	return 0;
}

/* walk.h itself, for what walk_thread has no argument for: what an earlier sample remembered. */
struct walk;
static struct world *walked;

static inline int walk_read(struct walk *walk, void *dst, uint32_t size, uint64_t addr)
{
	(void)walk;
	return world_read(walked, addr, dst, size);
}

#include "walk.h"

static inline uint8_t *bytes_at(struct world *w, uint64_t addr, size_t size)
{
	assert_true(addr >= ARENA_BASE && addr - ARENA_BASE + size <= w->used);
	return w->bytes + (addr - ARENA_BASE);
}

static inline void put(struct world *w, uint64_t addr, uint16_t offset, uint64_t value, size_t size)
{
	if (offset != NO)
		memcpy(bytes_at(w, addr + offset, size), &value, size);
}

static inline void put_ptr(struct world *w, uint64_t addr, uint16_t offset, uint64_t value)
{
	put(w, addr, offset, value, 8);
}

/* Allocates an object, filled with garbage where the test writes nothing. */
static inline uint64_t make(struct world *w, size_t size)
{
	uint64_t addr = ARENA_BASE + w->used;

	size = (size + 15) & ~(size_t)15;
	assert_true(w->used + size <= ARENA_SIZE);
	memset(w->bytes + w->used, 0xa5, size);
	w->used += size;
	return addr;
}

/* Makes an interpreter and puts it at the head of the list, as CPython does. */
static inline uint64_t make_interp(struct world *w)
{
	uint16_t end = w->l.interp_next > w->l.interp_threads_head ? w->l.interp_next : w->l.interp_threads_head;
	uint32_t guard_end = w->l.interp_code_guard + w->l.code_guard_size;
	uint64_t interp = make(w, end + 8u > guard_end ? end + 8u : guard_end), next;

	memcpy(&next, bytes_at(w, w->proc.interp_head, 8), 8);
	put_ptr(w, interp, w->l.interp_next, next);
	put_ptr(w, interp, w->l.interp_threads_head, 0);
	put_ptr(w, w->proc.interp_head, 0, interp);
	return interp;
}

static inline void set_frame(struct world *w, uint64_t tstate, uint64_t frame)
{
	uint64_t place = frame, root;

	if (w->l.tstate_cframe != NO && w->l.cframe_frame == NO) {
		/* 3.10's say nothing of frames. */
		root = tstate + w->l.tstate_window;
		put_ptr(w, root, w->l.cframe_previous, 0);
		make(w, 1024); /* the C stack is elsewhere */
		place = make(w, w->l.cframe_previous + 8u);
		make(w, 1024);
		put_ptr(w, place, w->l.cframe_previous, root);
		put_ptr(w, tstate, w->l.tstate_cframe, frame ? place : root);
		place = frame;
	}
	if (w->l.cframe_frame != NO) {
		/* The thread state's own cframe, without a frame, and that of the one run of the evaluation loop. */
		root = tstate + w->l.tstate_window;
		put_ptr(w, root, w->l.cframe_frame, 0);
		put_ptr(w, root, w->l.cframe_frame + 8, 0);
		make(w, 1024); /* the C stack is elsewhere */
		place = make(w, w->l.cframe_frame + 16u);
		make(w, 1024);
		put_ptr(w, place, w->l.cframe_frame, frame);
		put_ptr(w, place, w->l.cframe_frame + 8, root);
		if (!frame)
			place = root;
	}
	put_ptr(w, tstate, w->l.tstate_frame, place);
}

/* _status of a thread state that its thread attached last, one that it attached before another, a deleted one (3.12's
 * stays active); the bits that mean nothing here are garbage. */
enum status {
	STATUS_LAST = 0xa5a5a51b,
	STATUS_DETACHED = 0xa5a5a50b, /* the last one, without the GIL */
	STATUS_BEFORE = 0xa5a5a503,
	STATUS_DELETED = 0xa5a5a517,
};

static inline void set_status(struct world *w, uint64_t tstate, enum status status)
{
	if (w->l.tstate_status)
		put(w, tstate, w->l.tstate_status, status, 4);
}

static inline void set_data_stack(struct world *w, uint64_t tstate, uint64_t chunk, uint64_t top, uint64_t limit)
{
	put_ptr(w, tstate, w->l.tstate_datastack_top - 8, chunk);
	put_ptr(w, tstate, w->l.tstate_datastack_top, top);
	put_ptr(w, tstate, w->l.tstate_datastack_top + 8, limit);
}

/* All that a test makes is one data stack, of which nothing is known but that frames are on it. */
static inline uint64_t make_thread(struct world *w, uint64_t interp, uint64_t id, uint64_t frame)
{
	uint64_t tstate = make(w, w->l.tstate_window + ROOT_CFRAME), next;

	memcpy(&next, bytes_at(w, interp + w->l.interp_threads_head, 8), 8);
	put_ptr(w, tstate, w->l.tstate_next, next);
	put_ptr(w, tstate, w->l.tstate_interp, interp);
	put_ptr(w, tstate, w->l.tstate_thread_id, id);
	if (w->l.tstate_executor)
		put_ptr(w, tstate, w->l.tstate_executor, 0);
	set_status(w, tstate, STATUS_LAST);
	if (w->l.tstate_datastack_top)
		set_data_stack(w, tstate, ARENA_BASE, ARENA_BASE + ARENA_SIZE, ARENA_BASE + ARENA_SIZE);
	set_frame(w, tstate, frame);
	put_ptr(w, interp, w->l.interp_threads_head, tstate);
	return tstate;
}

/* Behind the last object there is more memory, as on its page. */
#define BEHIND 256

/* Makes a string of `length` ASCII characters, each an 'a'. */
static inline uint64_t make_text(struct world *w, uint64_t length)
{
	uint64_t string = make(w, w->l.str_ascii_data + length + BEHIND);

	put_ptr(w, string, w->l.str_length, length);
	put_ptr(w, string, w->l.str_hash, UINT64_MAX);
	if (w->l.string_kind == PYBPF_STR_UNICODE) /* kind:3, compact:1, ascii:1 */
		put(w, string, w->l.str_state, (1u | 8 | 16) << w->l.str_kind_shift, 4);
	memset(bytes_at(w, string + w->l.str_ascii_data, length + 1), 'a', length);
	return string;
}

static inline uint64_t make_lines(struct world *w, uint64_t size)
{
	uint64_t lines = make(w, w->l.bytes_data + size + BEHIND);

	put_ptr(w, lines, w->l.bytes_size, size);
	return lines;
}

static inline uint64_t make_code(struct world *w, int first_line)
{
	static uint32_t version = 1000;
	uint64_t code = make(w, (w->l.code_adaptive == NO ? 0 : w->l.code_adaptive) + PYBPF_CODE_WINDOW + 256u);

	put(w, code, w->l.code_type - 8, 3, 4); /* references */
	put_ptr(w, code, w->l.code_type, CODE_TYPE);
	put_ptr(w, code, w->l.code_filename, make_text(w, 60));
	put_ptr(w, code, w->l.code_name, make_text(w, 5));
	put_ptr(w, code, w->l.code_qualname, make_text(w, 7));
	put_ptr(w, code, w->l.code_linetable, make_lines(w, 30));
	put(w, code, w->l.code_firstlineno, (uint32_t)first_line, 4);
	put(w, code, w->l.code_version, version++, 4);
	put_ptr(w, code, w->l.code_tlbc, 0);
	return code;
}

/* Makes the entry frame that 3.12+ has below the first Python frame of each run of the evaluation loop. */
static inline uint64_t make_entry(struct world *w)
{
	uint64_t frame;

	if (w->l.frame_owner == NO)
		return 0;
	frame = make(w, w->l.frame_window);
	put_ptr(w, frame, w->l.frame_previous, 0);
	put(w, frame, w->l.frame_owner, w->l.owner_not_python, 1);
	return frame;
}

/* position: what the walk is to find. previous: 0 for the first frame of a thread. */
static inline uint64_t make_frame(struct world *w, uint64_t code, int position, uint64_t previous)
{
	bool first = !previous;
	uint64_t frame;

	if (first)
		previous = make_entry(w);
	frame = make(w, w->l.frame_window);
	put(w, frame, w->l.frame_entry, first, 1);
	put_ptr(w, frame, w->l.frame_code, code);
	put_ptr(w, frame, w->l.frame_previous, previous);
	if (w->l.position_kind == PYBPF_POS_LASTI)
		put(w, frame, w->l.frame_position, (uint32_t)position, 4);
	else
		put_ptr(w, frame, w->l.frame_position, code + (uint64_t)position);
	/* No tracing; no frame object; some function. */
	put_ptr(w, frame, w->l.frame_mark, w->l.frame_owner != NO && w->l.cframe_frame == NO ? 0x1000 : 0);
	put(w, frame, w->l.frame_owner, 0, 1);
	put(w, frame, w->l.frame_tlbc_index, 0, 4);
	return frame;
}

static inline void world_clear(struct world *w)
{
	w->used = 0;
	w->proc = (struct pybpf_runtime){.code_type = CODE_TYPE};
	w->proc.interp_head = make(w, 16);
	put_ptr(w, w->proc.interp_head, 0, 0);
}

/* The newest frame of a chain of one code object; the frame nearest the leaf has position 0. */
static inline uint64_t make_chain(struct world *w, uint64_t code, int depth)
{
	uint64_t frame = 0;

	for (int i = depth; i-- > 0;)
		frame = make_frame(w, code, i, frame);
	return frame;
}

static inline int walk(struct world *w, uint64_t thread_id, struct walk_stack *stack)
{
	const struct walk_memory memory = {.read = world_read, .source = w};

	w->reads = 0;
	return walk_thread(&memory, &w->l, &w->proc, thread_id, 0, 0, stack);
}

static inline void assert_walk(struct world *w, uint64_t thread_id, struct walk_stack *stack)
{
	int err = walk(w, thread_id, stack);

	if (err)
		print_error("layout: %s\n", w->origin);
	assert_int_equal(err, 0);
	assert_non_null(stack->frames);
}

/* Walks the thread and asserts that exactly these code objects, leaf first, and these flags are found. */
static inline void assert_codes(struct world *w, uint64_t thread_id, const uint64_t *codes, uint32_t count,
				uint32_t flags)
{
	struct walk_stack stack;

	assert_walk(w, thread_id, &stack);
	if (stack.depth != count || stack.flags != flags)
		print_error("layout: %s\n", w->origin);
	assert_int_equal(stack.flags, flags);
	assert_int_equal(stack.depth, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(stack.frames[i].code, codes[i]);
	free(stack.frames);
}

#define assert_one_code(w, thread_id, code) assert_codes(w, thread_id, (const uint64_t[]){code}, 1, 0)

/* Reads the debug offsets that are saved under a name. Returns their size. */
static inline size_t read_offsets_of(const char *name, uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX])
{
	char path[128];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "tests/data/debug-offsets-%s.bin", name);
	f = fopen(path, "rb");
	if (!f)
		print_error("%s is missing: run the test in the project's folder\n", path);
	assert_non_null(f);
	len = fread(bytes, 1, LAYOUT_DEBUG_OFFSETS_MAX, f);
	fclose(f);
	return len;
}

/* Runs a check for every layout. */
static inline void each_layout(void (*check)(struct world *w))
{
	struct world w = {.bytes = malloc(ARENA_SIZE)};
	struct layout_build build;

	assert_non_null(w.bytes);
	for (size_t i = 0; i < 2 * KNOWN_TABLES; i++) {
		assert_int_equal(layout_from_table(known_tables[i / 2][0], known_tables[i / 2][1], i % 2, &build), 0);
		w.l = build.layout;
		w.origin = build.origin;
		/* A frame has begun, wherever in its code it is: what becomes of others is in test_walk_data_stack.c.
		 */
		if (w.l.cframe_frame != NO)
			w.l.code_adaptive = 0;
		world_clear(&w);
		check(&w);
	}
	for (size_t i = 0; i < KNOWN_DEBUG_OFFSETS; i++) {
		uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX];
		struct error error;
		size_t len = read_offsets_of(known_debug_offsets[i], bytes);

		assert_int_equal(layout_from_debug_offsets(bytes, len, &build, &error), 0);
		w.l = build.layout;
		w.origin = build.origin;
		world_clear(&w);
		check(&w);
	}
	free(w.bytes);
}

#define LAYOUT_TEST(name)                                                                                              \
	static void test_##name(void **unused)                                                                         \
	{                                                                                                              \
		(void)unused;                                                                                          \
		each_layout(name);                                                                                     \
	}

static inline void assert_no_thread(struct world *w, uint64_t thread_id)
{
	struct walk_stack stack;

	assert_int_equal(walk(w, thread_id, &stack), -ENOENT);
	assert_null(stack.frames);
}

/* A list of threads leads to unmapped memory: whether the thread is in it is not known. */
static inline void assert_unreadable(struct world *w, uint64_t thread_id)
{
	struct walk_stack stack;

	assert_int_equal(walk(w, thread_id, &stack), -EFAULT);
	assert_null(stack.frames);
}

/* Walks as the kernel does; current and states are those of walk_start(). */
static inline struct walk *kernel_walk_again(struct world *w, uint64_t current, const struct walk_states *states,
					     const uint64_t *registers, uint32_t nr_registers)
{
	struct walk *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	walked = w;
	k->thread_id = THREAD;
	k->interp_head = w->proc.interp_head;
	k->code_type = w->proc.code_type;
	k->nr_candidates = nr_registers;
	for (uint32_t i = 0; i < nr_registers; i++)
		k->candidates[i] = registers[i];
	walk_start(k, &w->l, current, states);
	while (!walk_step(k, &w->l))
		;
	return k;
}

/* The same, where an earlier walk has found this thread state alone, or none (0). */
static inline struct walk *kernel_walk(struct world *w, uint64_t cached, const uint64_t *registers,
				       uint32_t nr_registers)
{
	struct walk_states states = {.tstate = {cached}, .count = cached != 0};

	/* As every thread state of a world has it. */
	if (w->l.tstate_status)
		states.id = 0xa5a5a5a5a5a5a5a5;
	return kernel_walk_again(w, 0, &states, registers, nr_registers);
}

static inline uint64_t leaf_code(const struct walk *k)
{
	return k->stack.depth ? k->frames[0].code : 0;
}

static const uint64_t wild_pointers[] = {1,
					 7,
					 0x1001,
					 UNMAPPED,
					 UNMAPPED + 3,
					 1ULL << 63,
					 (1ULL << 63) + 8,
					 0xffffffff,
					 UINT64_MAX - 7,
					 UINT64_MAX,
					 ARENA_BASE - (1 << 20)};

#endif
