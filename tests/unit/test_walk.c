// SPDX-License-Identifier: Apache-2.0
/* The walk over memory that the test makes: every layout, every way in which memory can be wrong. */
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

#include "layout.h"
#include "walk_user.h"

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
	struct pybpf_proc proc;
	uint8_t *bytes;
	size_t used;
	uint64_t reads;
};

static int world_read(void *source, uint64_t addr, void *dst, size_t size)
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

static int walk_read(struct walk *walk, void *dst, uint32_t size, uint64_t addr)
{
	(void)walk;
	return world_read(walked, addr, dst, size);
}

#include "walk.h"

static uint8_t *bytes_at(struct world *w, uint64_t addr, size_t size)
{
	assert_true(addr >= ARENA_BASE && addr - ARENA_BASE + size <= w->used);
	return w->bytes + (addr - ARENA_BASE);
}

static void put(struct world *w, uint64_t addr, uint16_t offset, uint64_t value, size_t size)
{
	if (offset != NO)
		memcpy(bytes_at(w, addr + offset, size), &value, size);
}

static void put_ptr(struct world *w, uint64_t addr, uint16_t offset, uint64_t value)
{
	put(w, addr, offset, value, 8);
}

/* What is not written by a test is garbage. */
static uint64_t make(struct world *w, size_t size)
{
	uint64_t addr = ARENA_BASE + w->used;

	size = (size + 15) & ~(size_t)15;
	assert_true(w->used + size <= ARENA_SIZE);
	memset(w->bytes + w->used, 0xa5, size);
	w->used += size;
	return addr;
}

/* As the interpreter does: the newest comes first. */
static uint64_t make_interp(struct world *w)
{
	uint16_t end = w->l.interp_next > w->l.interp_threads_head ? w->l.interp_next : w->l.interp_threads_head;
	uint64_t interp = make(w, end + 8u), next;

	memcpy(&next, bytes_at(w, w->proc.interp_head, 8), 8);
	put_ptr(w, interp, w->l.interp_next, next);
	put_ptr(w, interp, w->l.interp_threads_head, 0);
	put_ptr(w, w->proc.interp_head, 0, interp);
	return interp;
}

static void set_frame(struct world *w, uint64_t tstate, uint64_t frame)
{
	uint64_t place = frame, root;

	if (w->l.cframe_frame != NO) {
		/* The thread state's own cframe, without a frame, and that of the one run of the evaluation loop. */
		root = tstate + w->l.tstate_window;
		put_ptr(w, root, w->l.cframe_frame, 0);
		put_ptr(w, root, w->l.cframe_frame + 8, 0);
		make(w, 1024); /* the C stack is elsewhere */
		place = make(w, w->l.cframe_frame + 16u);
		put_ptr(w, place, w->l.cframe_frame, frame);
		put_ptr(w, place, w->l.cframe_frame + 8, root);
		if (!frame)
			place = root;
	}
	put_ptr(w, tstate, w->l.tstate_frame, place);
}

static void set_active(struct world *w, uint64_t tstate, bool active)
{
	if (w->l.tstate_status)
		put(w, tstate, w->l.tstate_status, active ? 0xa5a5a5b5u : 0xa5a5a5a5u & ~0x10u, 4);
}

static uint64_t make_thread(struct world *w, uint64_t interp, uint64_t id, uint64_t frame)
{
	uint64_t tstate = make(w, w->l.tstate_window + ROOT_CFRAME), next;

	memcpy(&next, bytes_at(w, interp + w->l.interp_threads_head, 8), 8);
	put_ptr(w, tstate, w->l.tstate_next, next);
	put_ptr(w, tstate, w->l.tstate_interp, interp);
	put_ptr(w, tstate, w->l.tstate_thread_id, id);
	set_active(w, tstate, true);
	set_frame(w, tstate, frame);
	put_ptr(w, interp, w->l.interp_threads_head, tstate);
	return tstate;
}

static uint64_t make_string(struct world *w, uint64_t hash)
{
	uint64_t string = make(w, 80);

	put_ptr(w, string, w->l.str_hash, hash);
	return string;
}

static uint64_t make_code(struct world *w, int first_line)
{
	static uint32_t version = 1000;
	uint64_t code = make(w, (w->l.code_adaptive == NO ? 0 : w->l.code_adaptive) + PYBPF_CODE_WINDOW + 256u);
	uint64_t name = make_string(w, 0x1234567 * (uint64_t)first_line);

	put_ptr(w, code, w->l.code_type, CODE_TYPE);
	put_ptr(w, code, w->l.code_filename, make_string(w, 77));
	put_ptr(w, code, w->l.code_name, name);
	put_ptr(w, code, w->l.code_qualname, make_string(w, 78));
	put_ptr(w, code, w->l.code_linetable, make(w, 64));
	put(w, code, w->l.code_firstlineno, (uint32_t)first_line, 4);
	put(w, code, w->l.code_version, version++, 4);
	put_ptr(w, code, w->l.code_tlbc, 0);
	return code;
}

/* What 3.12+ has below the first Python frame of each run of the evaluation loop. */
static uint64_t make_entry(struct world *w)
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
static uint64_t make_frame(struct world *w, uint64_t code, int position, uint64_t previous)
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
	put(w, frame, w->l.frame_owner, 0, 1);
	put(w, frame, w->l.frame_tlbc_index, 0, 4);
	return frame;
}

static void world_clear(struct world *w)
{
	w->used = 0;
	w->proc = (struct pybpf_proc){.code_type = CODE_TYPE, .state = PYBPF_PROC_READY};
	w->proc.interp_head = make(w, 16);
	put_ptr(w, w->proc.interp_head, 0, 0);
}

/* The newest frame of a chain of one code object; the frame nearest the leaf has position 0. */
static uint64_t make_chain(struct world *w, uint64_t code, int depth)
{
	uint64_t frame = 0;

	for (int i = depth; i-- > 0;)
		frame = make_frame(w, code, i, frame);
	return frame;
}

static int walk(struct world *w, uint64_t thread_id, struct walk_stack *stack)
{
	const struct walk_memory memory = {.read = world_read, .source = w};

	w->reads = 0;
	return walk_thread(&memory, &w->l, &w->proc, thread_id, stack);
}

static void assert_walk(struct world *w, uint64_t thread_id, struct walk_stack *stack)
{
	int err = walk(w, thread_id, stack);

	if (err)
		print_error("layout: %s\n", w->origin);
	assert_int_equal(err, 0);
	assert_non_null(stack->frames);
}

/* Walks and wants exactly these code objects, leaf first, and these flags. */
static void assert_codes(struct world *w, uint64_t thread_id, const uint64_t *codes, uint32_t count, uint32_t flags)
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

/* Runs a check for every layout there is. */
static void each_layout(void (*check)(struct world *w))
{
	static const int tables[][2] = {{2, 7}, {3, 6}, {3, 7}, {3, 8}, {3, 9}, {3, 10}, {3, 11}, {3, 12}};
	static const char *const files[] = {"3.13", "3.14", "3.15", "3.14t", "3.15t", "3.13-debug"};
	struct world w = {.bytes = malloc(ARENA_SIZE)};
	struct layout_build build;

	assert_non_null(w.bytes);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(tables); i++) {
		assert_int_equal(layout_from_table(tables[i / 2][0], tables[i / 2][1], i % 2, &build), 0);
		w.l = build.layout;
		w.origin = build.origin;
		world_clear(&w);
		check(&w);
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX];
		char path[128], why[256] = "";
		size_t len;
		FILE *f;

		snprintf(path, sizeof(path), "tests/data/debug-offsets-%s.bin", files[i]);
		f = fopen(path, "rb");
		if (!f)
			print_error("%s is missing: run the test in the project's folder\n", path);
		assert_non_null(f);
		len = fread(bytes, 1, sizeof(bytes), f);
		fclose(f);
		assert_int_equal(layout_from_debug_offsets(bytes, len, &build, why, sizeof(why)), 0);
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

/* Plain stacks */

static void plain_stack(struct world *w)
{
	uint64_t leaf = make_code(w, 30), middle = make_code(w, 20), root = make_code(w, 10), frame;
	struct walk_stack stack;

	frame = make_frame(w, root, 100, 0);
	frame = make_frame(w, middle, 202, frame);
	frame = make_frame(w, middle, 204, frame);
	frame = make_frame(w, leaf, 306, frame);
	make_thread(w, make_interp(w), THREAD, frame);
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.depth, 4);
	assert_int_equal(stack.flags, 0);
	assert_int_equal(stack.frames[0].code, leaf);
	assert_int_equal(stack.frames[0].position, 306);
	assert_int_equal(stack.frames[1].code, middle);
	assert_int_equal(stack.frames[1].position, 204);
	assert_int_equal(stack.frames[2].code, middle);
	assert_int_equal(stack.frames[2].position, 202);
	assert_int_equal(stack.frames[3].code, root);
	assert_int_equal(stack.frames[3].position, 100);
	assert_int_equal(stack.frames[1].sig, stack.frames[2].sig);
	assert_int_not_equal(stack.frames[0].sig, stack.frames[1].sig);
	free(stack.frames);
}
LAYOUT_TEST(plain_stack)

/* A frame is read with one read, and so is its code object: many samples pay for each more. */
static void few_reads(struct world *w)
{
	uint64_t interp = make_interp(w), code = make_code(w, 1);
	struct walk_stack stack;
	uint64_t reads;

	make_thread(w, interp, THREAD, make_chain(w, code, 10));
	make_thread(w, interp, THREAD_2, make_chain(w, code, 110));
	assert_walk(w, THREAD, &stack);
	free(stack.frames);
	reads = w->reads;
	assert_walk(w, THREAD_2, &stack);
	free(stack.frames);
	assert_true(w->reads - reads <= 100 * 3);
}
LAYOUT_TEST(few_reads)

static void no_frames(struct world *w)
{
	make_thread(w, make_interp(w), THREAD, 0);
	assert_codes(w, THREAD, NULL, 0, 0);
	/* 3.11, 3.12: before the first cframe. */
	world_clear(w);
	put_ptr(w, make_thread(w, make_interp(w), THREAD, 0), w->l.tstate_frame, 0);
	assert_codes(w, THREAD, NULL, 0, 0);
}
LAYOUT_TEST(no_frames)

/* A frame that has not begun: f_lasti is -1; prev_instr points before the first instruction. */
static void first_positions(struct world *w)
{
	uint64_t code = make_code(w, 1);
	int before = w->l.position_kind == PYBPF_POS_LASTI ? -1 : w->l.code_adaptive - 2;
	struct walk_stack stack;

	make_thread(w, make_interp(w), THREAD, make_frame(w, code, before, make_frame(w, code, 0, 0)));
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.frames[0].position, before);
	assert_int_equal(stack.frames[1].position, 0);
	free(stack.frames);
}
LAYOUT_TEST(first_positions)

/* An instruction pointer that is nowhere near the code. */
static void wild_positions(struct world *w)
{
	static const uint64_t wild[] = {
		0, 1, ARENA_BASE, UNMAPPED, 1ULL << 63, 0x8000000000000001ULL, UINT64_MAX, UINT64_MAX - 7};
	struct walk_stack stack;
	uint64_t code, frame;

	if (w->l.position_kind == PYBPF_POS_LASTI)
		return;
	code = make_code(w, 1);
	frame = make_frame(w, code, 0, 0);
	make_thread(w, make_interp(w), THREAD, frame);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		put_ptr(w, frame, w->l.frame_position, wild[i]);
		assert_walk(w, THREAD, &stack);
		assert_int_equal(stack.depth, 1);
		assert_int_equal(stack.frames[0].code, code);
		assert_int_equal(stack.frames[0].position, PYBPF_NO_POSITION);
		free(stack.frames);
	}
}
LAYOUT_TEST(wild_positions)

/* Which thread state */

static void many_threads(struct world *w)
{
	enum {
		INTERPS = 3,
		THREADS = 50
	};
	uint64_t codes[INTERPS * THREADS];
	int n = 0;

	for (int i = 0; i < INTERPS; i++) {
		uint64_t interp = make_interp(w);

		for (int t = 0; t < THREADS; t++, n++) {
			codes[n] = make_code(w, n + 1);
			make_thread(w, interp, THREAD + (uint64_t)n * 0x1000, make_frame(w, codes[n], n, 0));
		}
	}
	make_interp(w); /* one without threads */
	for (int i = 0; i < n; i++)
		assert_one_code(w, THREAD + (uint64_t)i * 0x1000, codes[i]);
}
LAYOUT_TEST(many_threads)

static void assert_no_thread(struct world *w, uint64_t thread_id)
{
	struct walk_stack stack;

	assert_int_equal(walk(w, thread_id, &stack), -ENOENT);
	assert_null(stack.frames);
}

static void unknown_thread(struct world *w)
{
	assert_no_thread(w, THREAD);
	make_interp(w);
	assert_no_thread(w, THREAD);
	make_thread(w, make_interp(w), THREAD_2, 0);
	assert_no_thread(w, THREAD);
	w->proc.interp_head = UNMAPPED;
	assert_no_thread(w, THREAD_2);
}
LAYOUT_TEST(unknown_thread)

/* One thread with a thread state in each of two interpreters runs in the one that is attached. */
static void attached_thread_state(struct world *w)
{
	uint64_t tstate[3], code[3];

	if (!w->l.tstate_status)
		return;
	for (int i = 0; i < 3; i++) {
		code[i] = make_code(w, i + 1);
		tstate[i] = make_thread(w, make_interp(w), THREAD, make_frame(w, code[i], 0, 0));
	}
	for (int active = 0; active < 3; active++) {
		for (int i = 0; i < 3; i++)
			set_active(w, tstate[i], i == active);
		assert_one_code(w, THREAD, code[active]);
	}
	/* With none attached (the GIL is released) one of them is taken, whole. */
	set_active(w, tstate[2], false);
	set_active(w, tstate[1], false);
	set_active(w, tstate[0], false);
	put_ptr(w, tstate[1], w->l.tstate_thread_id, THREAD_2);
	put_ptr(w, tstate[2], w->l.tstate_thread_id, THREAD_2);
	assert_one_code(w, THREAD, code[0]);
}
LAYOUT_TEST(attached_thread_state)

/* To 3.11 the runtime says who holds the GIL: that thread state is right if it is this thread's. */
static void current_thread_state(struct world *w)
{
	static const uint64_t wild[] = {0, 1, UNMAPPED, 1ULL << 63, UINT64_MAX - 7, UINT64_MAX};
	uint64_t code = make_code(w, 1), code_2 = make_code(w, 2), other = make_code(w, 3);
	uint64_t first, second, third;

	first = make_thread(w, make_interp(w), THREAD, make_frame(w, code, 0, 0));
	third = make_thread(w, make_interp(w), THREAD_2, make_frame(w, other, 0, 0));
	second = make_thread(w, make_interp(w), THREAD, make_frame(w, code_2, 0, 0));
	w->proc.tstate_current = make(w, 8);
	put_ptr(w, w->proc.tstate_current, 0, first);
	assert_one_code(w, THREAD, code);
	put_ptr(w, w->proc.tstate_current, 0, second);
	assert_one_code(w, THREAD, code_2);
	/* Another thread's: this thread's own is searched for. */
	put_ptr(w, w->proc.tstate_current, 0, third);
	assert_one_code(w, THREAD_2, other);
	set_active(w, first, false);
	assert_one_code(w, THREAD, code_2);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		put_ptr(w, w->proc.tstate_current, 0, wild[i]);
		assert_one_code(w, THREAD, code_2);
	}
	w->proc.tstate_current = UNMAPPED;
	assert_one_code(w, THREAD, code_2);
}
LAYOUT_TEST(current_thread_state)

/* Walks as the kernel does for a thread that has been sampled before; returns the leaf's code object. */
static uint64_t leaf_with_cache(struct world *w, uint64_t cached, int several, int *result)
{
	struct walk *k = calloc(1, sizeof(*k));
	uint64_t leaf;

	assert_non_null(k);
	walked = w;
	k->thread_id = THREAD;
	k->interp_head = w->proc.interp_head;
	k->code_type = w->proc.code_type;
	walk_start(k, &w->l, 0, cached, several);
	while (!walk_step(k, &w->l))
		;
	leaf = k->stack.depth ? k->frames[0].code : 0;
	*result = (int)k->result;
	free(k);
	return leaf;
}

static void remembered_thread_state(struct world *w)
{
	static const uint64_t wild[] = {1, UNMAPPED, ARENA_BASE, 1ULL << 63, UINT64_MAX - 7, UINT64_MAX};
	uint64_t code = make_code(w, 1), code_2 = make_code(w, 2), other = make_code(w, 3);
	uint64_t interp = make_interp(w);
	uint64_t first = make_thread(w, interp, THREAD, make_frame(w, code, 0, 0));
	uint64_t foreign = make_thread(w, interp, THREAD_2, make_frame(w, other, 0, 0)), second;
	int result;

	assert_int_equal(leaf_with_cache(w, first, 0, &result), code);
	assert_int_equal(result, WALK_OK);
	/* Freed, and its memory another thread's by now; or no memory at all. */
	assert_int_equal(leaf_with_cache(w, foreign, 0, &result), code);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		assert_int_equal(leaf_with_cache(w, wild[i], (int)i % 2, &result), code);
		assert_int_equal(result, WALK_OK);
	}
	second = make_thread(w, make_interp(w), THREAD, make_frame(w, code_2, 0, 0));
	if (w->l.tstate_status) {
		set_active(w, first, false);
		assert_int_equal(leaf_with_cache(w, first, 1, &result), code_2);
		/* The GIL is released: the one that was current last is the one that is remembered. */
		set_active(w, second, false);
		assert_int_equal(leaf_with_cache(w, first, 1, &result), code);
		assert_int_equal(leaf_with_cache(w, second, 1, &result), code_2);
	} else {
		assert_int_equal(leaf_with_cache(w, first, 1, &result), code);
		assert_int_equal(leaf_with_cache(w, second, 1, &result), code_2);
	}
	put_ptr(w, first, w->l.tstate_thread_id, THREAD_2);
	put_ptr(w, second, w->l.tstate_thread_id, THREAD_2);
	assert_int_equal(leaf_with_cache(w, first, 1, &result), 0);
	assert_int_equal(result, WALK_NO_THREAD_STATE);
	put_ptr(w, w->proc.interp_head, 0, 0);
	assert_int_equal(leaf_with_cache(w, 0, 0, &result), 0);
	assert_int_equal(result, WALK_NO_INTERPRETER);
}
LAYOUT_TEST(remembered_thread_state)

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

/* Frames that are none */

static void shim_frames(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), frame = 0, plain;

	if (w->l.frame_owner == NO)
		return;
	/* Each run of 3.12's evaluation loop has a cframe as well: see runs_within_runs. */
	if (w->l.cframe_frame != NO)
		return;
	/* Shims at the root, twice in the middle and at the leaf; what they have for code is no pointer. */
	for (int i = 0; i < 4; i++) {
		uint64_t shim = make_frame(w, i % 2 ? UNMAPPED : 1, 0, frame);

		put(w, shim, w->l.frame_owner, (uint64_t)w->l.owner_not_python + (uint64_t)i % 2, 1);
		frame = i == 0 ? make_frame(w, b, 0, shim) : i == 2 ? make_frame(w, a, 0, shim) : shim;
	}
	make_thread(w, make_interp(w), THREAD, frame);
	assert_codes(w, THREAD, (const uint64_t[]){a, b}, 2, 0);

	/* A generator's frame and a frame object's are Python frames. */
	plain = make_frame(w, a, 0, make_frame(w, b, 0, 0));
	make_thread(w, make_interp(w), THREAD_2, plain);
	for (int owner = 0; owner < w->l.owner_not_python; owner++) {
		put(w, plain, w->l.frame_owner, (uint64_t)owner, 1);
		assert_codes(w, THREAD_2, (const uint64_t[]){a, b}, 2, 0);
	}
}
LAYOUT_TEST(shim_frames)

/* Links a further run of the evaluation loop to the thread: a cframe (where there are any) with this frame. */
static void enter_run(struct world *w, uint64_t tstate, uint64_t cframes, int run, uint64_t frame)
{
	uint64_t cframe = cframes - (uint64_t)run * 64, outer;

	if (w->l.cframe_frame == NO) {
		put_ptr(w, tstate, w->l.tstate_frame, frame);
		return;
	}
	memcpy(&outer, bytes_at(w, tstate + w->l.tstate_frame, 8), 8);
	put_ptr(w, cframe, w->l.cframe_frame, frame);
	put_ptr(w, cframe, w->l.cframe_frame + 8, outer);
	put_ptr(w, tstate, w->l.tstate_frame, cframe);
}

/* A frame that is the first of a run that `outer` called. */
static uint64_t make_first_frame(struct world *w, uint64_t code, uint64_t outer)
{
	uint64_t entry = outer, frame;

	if (w->l.frame_owner != NO) {
		entry = make_entry(w);
		put_ptr(w, entry, w->l.frame_previous, outer);
	}
	frame = make_frame(w, code, 0, entry);
	put(w, frame, w->l.frame_entry, 1, 1);
	return frame;
}

/* Python calls C, which calls Python; and the moments at which the evaluation loop has no frame linked yet. */
static void runs_within_runs(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), c = make_code(w, 3), cframes = make(w, 1024) + 960;
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, 0);
	uint64_t outer = make_frame(w, a, 0, 0), inner, stale;

	enter_run(w, tstate, cframes, 0, outer);
	assert_one_code(w, THREAD, a);
	inner = make_frame(w, c, 0, make_first_frame(w, b, outer));
	enter_run(w, tstate, cframes, 1, inner);
	assert_codes(w, THREAD, (const uint64_t[]){c, b, a}, 3, 0);
	if (w->l.cframe_frame == NO)
		return;

	/* A third run has linked its cframe, in which an earlier call's leavings lie: nothing of them is told. */
	stale = make_first_frame(w, c, outer);
	enter_run(w, tstate, cframes, 2, stale);
	assert_codes(w, THREAD, (const uint64_t[]){c, b, a}, 3, 0);
	put_ptr(w, stale, w->l.frame_previous, 0);
	assert_codes(w, THREAD, (const uint64_t[]){c, b, a}, 3, 0);
	put_ptr(w, stale, w->l.frame_previous, stale);
	assert_codes(w, THREAD, (const uint64_t[]){c, b, a}, 3, 0);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, cframes - 128, w->l.cframe_frame, wild_pointers[i]);
		assert_codes(w, THREAD, (const uint64_t[]){c, b, a}, 3, 0);
	}
	/* The frame that lies there was linked properly, and popped. */
	stale = make_first_frame(w, c, inner);
	put_ptr(w, cframes - 128, w->l.cframe_frame, stale);
	assert_codes(w, THREAD, (const uint64_t[]){c, c, b, a}, 4, 0);
	put_ptr(w, tstate, w->l.tstate_datastack_top, stale);
	put_ptr(w, tstate, w->l.tstate_datastack_top + 8, stale + 4096);
	assert_codes(w, THREAD, (const uint64_t[]){c, b, a}, 3, 0);
	/* Its outer run is not stored yet: without registers there is no telling. */
	put_ptr(w, cframes - 128, w->l.cframe_frame + 8, 1);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(runs_within_runs)

/* Walks with registers; returns the leaf's code object, and the stack's depth and flags. */
static uint64_t leaf_with_registers(struct world *w, const uint64_t *registers, uint32_t count, uint32_t *depth,
				    uint32_t *flags)
{
	struct walk *k = calloc(1, sizeof(*k));
	uint64_t leaf;

	assert_non_null(k);
	walked = w;
	k->thread_id = THREAD;
	k->interp_head = w->proc.interp_head;
	k->code_type = w->proc.code_type;
	k->nr_candidates = count;
	memcpy(k->candidates, registers, count * sizeof(*registers));
	walk_start(k, &w->l, 0, 0, 0);
	while (!walk_step(k, &w->l))
		;
	leaf = k->stack.depth ? k->frames[0].code : 0;
	*depth = k->stack.depth;
	*flags = k->stack.flags;
	free(k);
	return leaf;
}

/* A generator has been unlinked, and the caller's frame is not the thread's yet. */
static void generator_yields(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), g = make_code(w, 3);
	uint64_t outer = make_frame(w, a, 0, 0), caller = make_frame(w, b, 0, outer);
	uint64_t generator = make_frame(w, g, 0, caller), popped = make_frame(w, g, 0, caller);
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, generator);
	const uint64_t registers[] = {0, 1, UNMAPPED, generator, popped, tstate, caller + 4, UINT64_MAX, caller, outer};
	uint32_t depth, flags;

	if (w->l.tstate_datastack_top) {
		put_ptr(w, tstate, w->l.tstate_datastack_top, popped);
		put_ptr(w, tstate, w->l.tstate_datastack_top + 8, popped + 4096);
	}
	assert_int_equal(leaf_with_registers(w, registers, ARRAY_SIZE(registers), &depth, &flags), g);
	assert_int_equal(depth, 3);
	put_ptr(w, generator, w->l.frame_previous, 0);
	if (!w->l.tstate_datastack_top) {
		/* Up to 3.10 the order is right, and a chain that ends is a chain. */
		assert_codes(w, THREAD, (const uint64_t[]){g}, 1, 0);
		return;
	}
	assert_int_equal(leaf_with_registers(w, registers, ARRAY_SIZE(registers), &depth, &flags), b);
	assert_int_equal(depth, 2);
	assert_int_equal(flags, 0);
	/* In no register: not told. (Where there are cframes, the outer run's frame is; here it has none.) */
	assert_int_equal(leaf_with_registers(w, registers, 8, &depth, &flags), 0);
	assert_int_equal(depth, 0);
	assert_int_equal(flags, w->l.cframe_frame == NO ? PYBPF_STACK_FAULT : 0);
}
LAYOUT_TEST(generator_yields)

static void tagged_code(struct world *w)
{
	uint64_t code = make_code(w, 1), frame = make_frame(w, code, 4, 0);
	struct walk_stack stack;

	make_thread(w, make_interp(w), THREAD, frame);
	for (uint64_t tag = 1; tag < 4; tag++) {
		put_ptr(w, frame, w->l.frame_code, code | tag);
		if ((w->l.code_tag_mask & tag) == tag) {
			assert_walk(w, THREAD, &stack);
			assert_int_equal(stack.depth, 1);
			assert_int_equal(stack.flags, 0);
			assert_int_equal(stack.frames[0].code, code);
			assert_int_equal(stack.frames[0].position, 4);
			free(stack.frames);
		} else {
			/* Where references carry no tags this is no code object. */
			assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_NOT_CODE);
		}
	}
}
LAYOUT_TEST(tagged_code)

/* Free-threaded 3.14+: each thread runs its own copy of the bytecode. */
static void thread_local_bytecode(struct world *w)
{
	uint64_t code, copies, array, frame;
	static const struct {
		int32_t index;
		uint64_t copy_offset; /* of the instruction in the copy */
		bool known;
	} cases[] = {
		{0, 0, true},  {1, 0, true},   {1, 60, true},       {2, 6, true},          {3, 6, false},
		{4, 6, false}, {-1, 6, false}, {1 << 30, 6, false}, {INT32_MIN, 6, false}, {1, 1ULL << 40, false},
	};
	struct walk_stack stack;

	if (w->l.frame_tlbc_index == NO)
		return;
	code = make_code(w, 1);
	copies = make(w, 1024);
	array = make(w, 8 + 4 * 8);
	put_ptr(w, code, w->l.code_tlbc, array);
	put_ptr(w, array, 0, 4);
	put_ptr(w, array, 8, code + w->l.code_adaptive);
	put_ptr(w, array, 16, copies);
	put_ptr(w, array, 24, copies + 512);
	put_ptr(w, array, 32, 0); /* not made yet */
	frame = make_frame(w, code, 0, 0);
	make_thread(w, make_interp(w), THREAD, frame);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t base = cases[i].index == 0   ? code + w->l.code_adaptive
				: cases[i].index == 2 ? copies + 512
						      : copies;

		put(w, frame, w->l.frame_tlbc_index, (uint32_t)cases[i].index, 4);
		put_ptr(w, frame, w->l.frame_position, base + cases[i].copy_offset);
		assert_walk(w, THREAD, &stack);
		assert_int_equal(stack.depth, 1);
		assert_int_equal(stack.flags, 0);
		assert_int_equal(stack.frames[0].position,
				 cases[i].known ? w->l.code_adaptive + (int)cases[i].copy_offset : PYBPF_NO_POSITION);
		free(stack.frames);
	}
	put(w, frame, w->l.frame_tlbc_index, 1, 4);
	for (int i = 0; i < 3; i++) {
		put_ptr(w, code, w->l.code_tlbc, i == 0 ? UNMAPPED : i == 1 ? 0 : UINT64_MAX - 7);
		assert_walk(w, THREAD, &stack);
		assert_int_equal(stack.frames[0].position, PYBPF_NO_POSITION);
		free(stack.frames);
	}
}
LAYOUT_TEST(thread_local_bytecode)

static void not_code(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), none = make_code(w, 3), frame;

	put_ptr(w, none, w->l.code_type, CODE_TYPE + 8);
	frame = make_frame(w, a, 0, make_frame(w, none, 0, make_frame(w, b, 0, 0)));
	make_thread(w, make_interp(w), THREAD, frame);
	assert_codes(w, THREAD, (const uint64_t[]){a, b}, 2, PYBPF_STACK_NOT_CODE);
	make_thread(w, make_interp(w), THREAD_2, make_frame(w, none, 0, 0));
	assert_codes(w, THREAD_2, NULL, 0, PYBPF_STACK_NOT_CODE);
	/* A stripped binary does not tell where the type is. */
	w->proc.code_type = 0;
	assert_codes(w, THREAD, (const uint64_t[]){a, none, b}, 3, 0);
}
LAYOUT_TEST(not_code)

/* Memory that is not there */

static void unreadable_frames(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), c = make_code(w, 3);
	uint64_t root = make_frame(w, c, 0, 0), middle = make_frame(w, b, 0, root), leaf = make_frame(w, a, 0, middle);
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, leaf);

	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		uint64_t wild = wild_pointers[i];

		put_ptr(w, middle, w->l.frame_previous, wild);
		if (w->l.cframe_frame == NO)
			assert_codes(w, THREAD, (const uint64_t[]){a, b}, 2, PYBPF_STACK_FAULT);
		else
			assert_codes(w, THREAD, NULL, 0, 0);
		put_ptr(w, middle, w->l.frame_previous, root);

		/* (Tag bits are none of the pointer's.) */
		put_ptr(w, middle, w->l.frame_code, wild);
		assert_codes(w, THREAD, (const uint64_t[]){a, c}, 2, PYBPF_STACK_FAULT);
		put_ptr(w, middle, w->l.frame_code, b);

		/* Where there are cframes it is the outer run's frame that counts, and that one has none. */
		set_frame(w, tstate, wild);
		assert_codes(w, THREAD, NULL, 0, w->l.cframe_frame == NO ? PYBPF_STACK_FAULT : 0);
		put_ptr(w, tstate, w->l.tstate_frame, wild);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		set_frame(w, tstate, leaf);
	}
	put_ptr(w, middle, w->l.frame_code, 0);
	assert_codes(w, THREAD, (const uint64_t[]){a, c}, 2, PYBPF_STACK_FAULT);
	put_ptr(w, middle, w->l.frame_code, b);
	assert_codes(w, THREAD, (const uint64_t[]){a, b, c}, 3, 0);

	/* The last bytes of a frame lie beyond the end of what is mapped. */
	root = make_frame(w, c, 0, 0);
	put_ptr(w, leaf, w->l.frame_previous, root);
	assert_codes(w, THREAD, (const uint64_t[]){a, c}, 2, 0);
	w->used = root - ARENA_BASE + w->l.frame_window - 1u;
	if (w->l.cframe_frame == NO)
		assert_codes(w, THREAD, (const uint64_t[]){a}, 1, PYBPF_STACK_FAULT);
	else
		assert_codes(w, THREAD, NULL, 0, 0);
}
LAYOUT_TEST(unreadable_frames)

static void wild_lists(struct world *w)
{
	uint64_t code = make_code(w, 1), oldest = make_interp(w), interp, tstate, other;

	make_thread(w, oldest, THREAD_2, make_frame(w, code, 0, 0));
	interp = make_interp(w);
	tstate = make_thread(w, interp, THREAD, make_frame(w, code, 0, 0));
	other = make_thread(w, interp, 5, 0);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		/* A torn list of threads ends there; the next interpreter is looked at all the same. */
		put_ptr(w, other, w->l.tstate_next, wild_pointers[i]);
		assert_no_thread(w, THREAD);
		assert_one_code(w, THREAD_2, code);
		put_ptr(w, other, w->l.tstate_next, tstate);
		assert_one_code(w, THREAD, code);

		put_ptr(w, interp, w->l.interp_threads_head, wild_pointers[i]);
		assert_no_thread(w, THREAD);
		assert_one_code(w, THREAD_2, code);
		put_ptr(w, interp, w->l.interp_threads_head, other);

		put_ptr(w, interp, w->l.interp_next, wild_pointers[i]);
		assert_no_thread(w, THREAD_2);
		assert_one_code(w, THREAD, code);
		put_ptr(w, interp, w->l.interp_next, oldest);

		put_ptr(w, w->proc.interp_head, 0, wild_pointers[i]);
		assert_no_thread(w, THREAD);
		put_ptr(w, w->proc.interp_head, 0, interp);
	}
}
LAYOUT_TEST(wild_lists)

/* Unaligned addresses of readable memory are nothing that CPython has, and nothing to fall over. */
static void unaligned(struct world *w)
{
	uint64_t code = make_code(w, 1), interp = make_interp(w), frame = make_chain(w, code, 5), tstate;
	struct walk_stack stack;

	tstate = make_thread(w, interp, THREAD, frame);
	make(w, 8192);
	for (uint64_t shift = 1; shift < 8; shift++) {
		put_ptr(w, frame, w->l.frame_previous, frame + shift);
		if (walk(w, THREAD, &stack) == 0)
			free(stack.frames);
		set_frame(w, tstate, frame + shift);
		if (walk(w, THREAD, &stack) == 0)
			free(stack.frames);
		set_frame(w, tstate, frame);
		put_ptr(w, frame, w->l.frame_code, code + shift);
		assert_walk(w, THREAD, &stack);
		free(stack.frames);
		put_ptr(w, frame, w->l.frame_code, code);
		put_ptr(w, interp, w->l.interp_threads_head, tstate + shift);
		assert_no_thread(w, THREAD);
		put_ptr(w, interp, w->l.interp_threads_head, tstate);
		set_frame(w, tstate, make_frame(w, code, 0, 0));
		assert_one_code(w, THREAD, code);
		set_frame(w, tstate, frame);
	}
}
LAYOUT_TEST(unaligned)

/* A layout that asks for more than the buffer holds gets nothing. */
static void oversized_windows(struct world *w)
{
	struct pybpf_layout good = w->l;
	const struct walk_memory memory = {.read = world_read, .source = w};
	uint64_t code = make_code(w, 1);
	struct walk_code read;

	make_thread(w, make_interp(w), THREAD, make_frame(w, code, 0, 0));
	make(w, UINT16_MAX);
	w->l.frame_window = PYBPF_FRAME_WINDOW + 1;
	assert_codes(w, THREAD, NULL, 0, w->l.cframe_frame == NO ? PYBPF_STACK_FAULT : 0);
	w->l.frame_window = UINT16_MAX;
	assert_codes(w, THREAD, NULL, 0, w->l.cframe_frame == NO ? PYBPF_STACK_FAULT : 0);
	w->l = good;
	w->l.code_window = UINT16_MAX;
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	assert_int_equal(walk_read_code(&memory, &w->l, code, &read), -EFAULT);
	w->l = good;
	w->l.tstate_window = UINT16_MAX;
	assert_no_thread(w, THREAD);
	w->l = good;
	assert_one_code(w, THREAD, code);
}
LAYOUT_TEST(oversized_windows)

/* Circles */

static void frame_circles(struct world *w)
{
	static const int lengths[] = {1, 2, 7, 1000}, leads[] = {0, 1, 5, 100};

	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(leads); i++) {
		int length = lengths[i / ARRAY_SIZE(leads)], lead = leads[i % ARRAY_SIZE(leads)];
		struct walk_stack stack;
		uint64_t code, first, last;

		world_clear(w);
		code = make_code(w, 1);
		last = first = make_frame(w, code, 0, 0);
		for (int n = 1; n < length; n++)
			first = make_frame(w, code, 0, first);
		put_ptr(w, last, w->l.frame_previous, first);
		for (int n = 0; n < lead; n++)
			first = make_frame(w, code, 0, first);
		make_thread(w, make_interp(w), THREAD, first);
		assert_walk(w, THREAD, &stack);
		if (w->l.cframe_frame != NO && stack.depth < 16) {
			/* Nothing proves so short a circle to be a stack. */
			assert_int_equal(stack.depth, 0);
			free(stack.frames);
			continue;
		}
		assert_int_equal(stack.flags, PYBPF_STACK_CYCLE);
		/* Every frame was met, and few were met often. */
		assert_true(stack.depth >= (uint32_t)(lead + length));
		assert_true(stack.depth <= (uint32_t)(4 * (lead + length)));
		assert_true(w->reads <= 16u + 3u * 4u * (uint32_t)(lead + length));
		free(stack.frames);
	}
	if (w->l.frame_owner != NO) {
		uint64_t shim;

		world_clear(w);
		shim = make_frame(w, 0, 0, 0);
		put_ptr(w, shim, w->l.frame_previous, shim);
		put(w, shim, w->l.frame_owner, w->l.owner_not_python, 1);
		make_thread(w, make_interp(w), THREAD, shim);
		assert_codes(w, THREAD, NULL, 0, w->l.cframe_frame == NO ? PYBPF_STACK_CYCLE : 0);
	}
}
LAYOUT_TEST(frame_circles)

static void list_circles(struct world *w)
{
	uint64_t interp = make_interp(w), tstate = make_thread(w, interp, THREAD_2, 0);

	put_ptr(w, tstate, w->l.tstate_next, tstate);
	assert_no_thread(w, THREAD);
	assert_true(w->reads < 4 * PYBPF_MAX_THREADS);
	put_ptr(w, tstate, w->l.tstate_next, 0);
	put_ptr(w, interp, w->l.interp_next, interp);
	assert_no_thread(w, THREAD);
	assert_true(w->reads < 4 * PYBPF_MAX_THREADS);
}
LAYOUT_TEST(list_circles)

/* Depth */

static void assert_depth(struct world *w, uint32_t depth)
{
	struct walk_stack stack;
	uint32_t walked_frames = depth < PYBPF_MAX_WALK ? depth : PYBPF_MAX_WALK, flags = 0;
	uint32_t kept = depth < PYBPF_MAX_FRAMES ? depth : PYBPF_MAX_FRAMES;

	world_clear(w);
	make_thread(w, make_interp(w), THREAD, make_chain(w, make_code(w, 1), (int)depth));
	assert_walk(w, THREAD, &stack);
	if (depth > PYBPF_MAX_FRAMES)
		flags |= PYBPF_STACK_CUT;
	if (depth > PYBPF_MAX_WALK)
		flags |= PYBPF_STACK_NO_ROOT;
	assert_int_equal(stack.depth, walked_frames);
	assert_int_equal(stack.flags, flags);
	for (uint32_t i = 0; i < (depth > PYBPF_MAX_FRAMES ? PYBPF_HALF_FRAMES : kept); i++)
		assert_int_equal(stack.frames[i].position, i);
	if (depth > PYBPF_MAX_FRAMES) {
		for (uint32_t i = walked_frames - PYBPF_HALF_FRAMES; i < walked_frames; i++) {
			uint32_t slot = PYBPF_HALF_FRAMES + (i - PYBPF_HALF_FRAMES) % PYBPF_HALF_FRAMES;

			assert_int_equal(stack.frames[slot].position, i);
		}
	}
	free(stack.frames);
}

static void depths(struct world *w)
{
	static const uint32_t all[] = {1, 2, 4096, 4097, 8191, 8192, 8193, 12000, 12288, 12289};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_depth(w, all[i]);
}
LAYOUT_TEST(depths)

static void depths_beyond_the_walk(struct world *w)
{
	/* (An entry frame is a step as well.) */
	assert_depth(w, PYBPF_MAX_WALK - 1);
	assert_depth(w, PYBPF_MAX_WALK + 1);
	assert_depth(w, 70000);
}
LAYOUT_TEST(depths_beyond_the_walk)

/* Signatures */

static struct walk_code read_code(struct world *w, uint64_t code)
{
	const struct walk_memory memory = {.read = world_read, .source = w};
	struct walk_code read;

	assert_int_equal(walk_read_code(&memory, &w->l, code, &read), 0);
	return read;
}

static void code_fields(struct world *w)
{
	const struct walk_memory memory = {.read = world_read, .source = w};
	uint64_t code = make_code(w, 1234), want;
	struct walk_code read = read_code(w, code);
	struct walk_stack stack;

	assert_int_equal(read.first_line, 1234);
	memcpy(&want, bytes_at(w, code + w->l.code_filename, 8), 8);
	assert_int_equal(read.file, want);
	memcpy(&want, bytes_at(w, code + (w->l.code_qualname == NO ? w->l.code_name : w->l.code_qualname), 8), 8);
	assert_int_equal(read.name, want);
	memcpy(&want, bytes_at(w, code + w->l.code_linetable, 8), 8);
	assert_int_equal(read.lines, want);
	/* Both ways of reading agree on the signature: what the kernel announces is found again. */
	make_thread(w, make_interp(w), THREAD, make_frame(w, code, 0, 0));
	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.frames[0].sig, read.sig);
	free(stack.frames);
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++)
		assert_int_equal(walk_read_code(&memory, &w->l, wild_pointers[i], &read), -EFAULT);
}
LAYOUT_TEST(code_fields)

static void signatures(struct world *w)
{
	uint64_t code = make_code(w, 1), name, other;
	uint32_t sig = read_code(w, code).sig;
	const uint16_t pointers[] = {w->l.code_filename, w->l.code_name, w->l.code_linetable};
	const uint16_t numbers[] = {w->l.code_firstlineno, w->l.code_version};

	assert_int_equal(read_code(w, code).sig, sig);
	for (size_t i = 0; i < ARRAY_SIZE(pointers); i++) {
		uint64_t old;

		memcpy(&old, bytes_at(w, code + pointers[i], 8), 8);
		put_ptr(w, code, pointers[i], make_string(w, 0x1234567));
		assert_int_not_equal(read_code(w, code).sig, sig);
		put_ptr(w, code, pointers[i], old);
		assert_int_equal(read_code(w, code).sig, sig);
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint32_t old;

		if (numbers[i] == NO)
			continue;
		memcpy(&old, bytes_at(w, code + numbers[i], 4), 4);
		for (int bit = 0; bit < 32; bit++) {
			put(w, code, numbers[i], old ^ 1u << bit, 4);
			assert_int_not_equal(read_code(w, code).sig, sig);
		}
		put(w, code, numbers[i], old, 4);
	}
	/* Before co_version: the same addresses, but the name or the path is another string by now. */
	for (size_t i = 0; w->l.code_version == NO && i < 2; i++) {
		memcpy(&name, bytes_at(w, code + pointers[i], 8), 8);
		put_ptr(w, name, w->l.str_length, 1234);
		assert_int_not_equal(read_code(w, code).sig, sig);
		put_ptr(w, name, w->l.str_length, 0xa5a5a5a5a5a5a5a5);
		put(w, name, w->l.str_ascii_data + 5u, 'x', 1);
		assert_int_not_equal(read_code(w, code).sig, sig);
		put(w, name, w->l.str_ascii_data + 5u, 0xa5, 1);
		/* Its hash may be computed at any time. */
		put_ptr(w, name, w->l.str_hash, 99);
		assert_int_equal(read_code(w, code).sig, sig);
	}
	assert_int_equal(read_code(w, code).sig, sig);
	other = make_code(w, 1);
	assert_int_not_equal(read_code(w, other).sig, sig);
	/* A name that can't be read is no obstacle. */
	put_ptr(w, code, w->l.code_name, UNMAPPED);
	sig = read_code(w, code).sig;
	assert_int_equal(read_code(w, code).sig, sig);
}
LAYOUT_TEST(signatures)

/* What changes while a code object lives (reference counts, counters, the bytecode as it specialises) is not
 * in it. */
static void stable_signature(struct world *w)
{
	const struct {
		uint16_t at, size;
	} identity[] = {{w->l.code_filename, 8},
			{w->l.code_name, 8},
			{w->l.code_linetable, 8},
			{w->l.code_firstlineno, 4},
			{w->l.code_version, 4}};
	uint64_t code = make_code(w, 1);
	uint32_t sig = read_code(w, code).sig;

	for (uint16_t i = 0; i < w->l.code_window; i++) {
		bool part = false;

		for (size_t j = 0; j < ARRAY_SIZE(identity); j++)
			part |= i >= identity[j].at && i < identity[j].at + identity[j].size;
		if (part)
			continue;
		*bytes_at(w, code + i, 1) ^= 0xff;
		assert_int_equal(read_code(w, code).sig, sig);
	}
}
LAYOUT_TEST(stable_signature)

/* Corruption */

static uint64_t random_state;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void corrupt(struct world *w)
{
	uint64_t where = random_u64() % (w->used - 8), value = random_u64();

	switch (random_u64() % 5) {
	case 0:
		w->bytes[where] ^= 1u << value % 8;
		return;
	case 1:
		value = wild_pointers[value % ARRAY_SIZE(wild_pointers)];
		break;
	case 2: /* a place in the arena, as a pointer of CPython's would be */
		value = ARENA_BASE + (value % w->used & ~7ULL);
		break;
	case 3:
		value = ARENA_BASE + value % w->used;
		break;
	}
	memcpy(w->bytes + (where & ~7ULL), &value, 8);
}

static void corruption(struct world *w)
{
	enum {
		ROUNDS = 150,
		SAME = 8
	};
	/* A thread state or interpreter costs at most 3 reads, a frame with code, hash and its own bytecode
	 * at most 6. */
	const uint64_t most = 3ULL * (PYBPF_MAX_THREADS + 2) + 6ULL * (PYBPF_MAX_WALK + 2);

	random_state = 0x9e3779b97f4a7c15ULL;
	for (int round = 0; round < ROUNDS; round++) {
		struct walk_stack stack;

		world_clear(w);
		for (int i = 0; i < 3; i++) {
			uint64_t interp = make_interp(w), code = make_code(w, i + 1);

			for (int t = 0; t < 3; t++)
				make_thread(w, interp, THREAD + (uint64_t)(t * 0x1000), make_chain(w, code, 6));
		}
		w->proc.tstate_current = round % 2 ? make(w, 8) : 0;
		for (int i = 0; i < SAME; i++) {
			for (int n = round % 16; n >= 0; n--)
				corrupt(w);
			for (int t = 0; t < 4; t++) {
				int err = walk(w, THREAD + (uint64_t)(t * 0x1000), &stack);

				assert_true(err == 0 || err == -ENOENT);
				assert_true(w->reads <= most);
				assert_true(stack.depth <= PYBPF_MAX_WALK);
				assert_int_equal(!err, stack.frames != NULL);
				free(stack.frames);
			}
		}
	}
}
LAYOUT_TEST(corruption)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_stack),
		cmocka_unit_test(test_few_reads),
		cmocka_unit_test(test_no_frames),
		cmocka_unit_test(test_first_positions),
		cmocka_unit_test(test_wild_positions),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_unknown_thread),
		cmocka_unit_test(test_attached_thread_state),
		cmocka_unit_test(test_current_thread_state),
		cmocka_unit_test(test_remembered_thread_state),
		cmocka_unit_test(test_runs_within_runs),
		cmocka_unit_test(test_generator_yields),
		cmocka_unit_test(test_shim_frames),
		cmocka_unit_test(test_tagged_code),
		cmocka_unit_test(test_thread_local_bytecode),
		cmocka_unit_test(test_not_code),
		cmocka_unit_test(test_unreadable_frames),
		cmocka_unit_test(test_wild_lists),
		cmocka_unit_test(test_unaligned),
		cmocka_unit_test(test_oversized_windows),
		cmocka_unit_test(test_frame_circles),
		cmocka_unit_test(test_list_circles),
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_depths_beyond_the_walk),
		cmocka_unit_test(test_code_fields),
		cmocka_unit_test(test_signatures),
		cmocka_unit_test(test_stable_signature),
		cmocka_unit_test(test_corruption),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
