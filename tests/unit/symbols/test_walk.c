// SPDX-License-Identifier: Apache-2.0
/* The walk over memory that the test makes: plain stacks, and which thread state is the thread's. */
#include "walk_world.h"

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

	if (w->l.cframe_frame != NO)
		return; /* see test_walk_data_stack.c */
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

/* Whatever follows it. */
static void assert_leaf(struct world *w, uint64_t code)
{
	struct walk_stack stack;

	assert_walk(w, THREAD, &stack);
	assert_int_equal(stack.frames[0].code, code);
	free(stack.frames);
}

/* One thread with a thread state in each of three interpreters runs in the one that it attached last. */
static void attached_thread_state(struct world *w)
{
	uint64_t tstate[3], code[3];

	if (!w->l.tstate_status)
		return;
	for (int i = 0; i < 3; i++) {
		code[i] = make_code(w, i + 1);
		tstate[i] = make_thread(w, make_interp(w), THREAD, make_frame(w, code[i], 0, 0));
	}
	for (int last = 0; last < 3; last++) {
		for (int i = 0; i < 3; i++)
			set_status(w, tstate[i], i == last ? STATUS_LAST : STATUS_BEFORE);
		assert_leaf(w, code[last]);
	}
	/* The last one has been deleted: one of the others is taken, whole. */
	set_status(w, tstate[2], STATUS_DELETED);
	set_frame(w, tstate[0], 0);
	assert_one_code(w, THREAD, code[1]);
	set_frame(w, tstate[0], make_frame(w, code[0], 0, 0));
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
	uint64_t first, second, third, own = code_2;

	/* The newest one that has frames, but where the C stack tells. */
	if (w->l.tstate_cframe != NO && !w->l.tstate_status)
		own = code;
	first = make_thread(w, make_interp(w), THREAD, make_frame(w, code, 0, 0));
	third = make_thread(w, make_interp(w), THREAD_2, make_frame(w, other, 0, 0));
	second = make_thread(w, make_interp(w), THREAD, make_frame(w, code_2, 0, 0));
	w->proc.tstate_current = make(w, 8);
	put_ptr(w, w->proc.tstate_current, 0, first);
	assert_leaf(w, code);
	put_ptr(w, w->proc.tstate_current, 0, second);
	assert_leaf(w, code_2);
	/* Another thread's: this thread's own is searched for. */
	put_ptr(w, w->proc.tstate_current, 0, third);
	assert_one_code(w, THREAD_2, other);
	set_status(w, first, STATUS_BEFORE);
	assert_leaf(w, own);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		put_ptr(w, w->proc.tstate_current, 0, wild[i]);
		assert_leaf(w, own);
	}
	w->proc.tstate_current = UNMAPPED;
	assert_leaf(w, own);
}
LAYOUT_TEST(current_thread_state)

/* Makes a thread that has been sampled before; returns the leaf's code object. */
static uint64_t leaf_with_cache(struct world *w, uint64_t cached, int *result)
{
	struct walk *k = kernel_walk(w, cached, NULL, 0);
	uint64_t leaf = leaf_code(k);

	*result = (int)k->result;
	free(k);
	return leaf;
}

/* Is what an earlier walk found of a thread state with this id believed? */
static bool is_remembered(struct world *w, uint64_t cached, uint64_t id)
{
	struct walk_states states = {.tstate = {cached}, .count = 1, .id = id};
	struct walk *k = kernel_walk(w, 0, NULL, 0);
	bool remembered;

	walk_start(k, &w->l, 0, &states);
	remembered = k->remembered;
	free(k);
	return remembered;
}

static void remembered_thread_state(struct world *w)
{
	static const uint64_t wild[] = {1, UNMAPPED, ARENA_BASE, 1ULL << 63, UINT64_MAX - 7, UINT64_MAX};
	uint64_t code = make_code(w, 1), code_2 = make_code(w, 2), other = make_code(w, 3);
	uint64_t interp = make_interp(w);
	uint64_t first = make_thread(w, interp, THREAD, make_frame(w, code, 0, 0));
	uint64_t foreign = make_thread(w, interp, THREAD_2, make_frame(w, other, 0, 0)), second;
	int result;

	assert_int_equal(leaf_with_cache(w, first, &result), code);
	assert_int_equal(result, WALK_OK);
	/* Freed, and the next thread state of this thread is in its place. */
	if (w->l.tstate_status && w->l.tstate_datastack_top) {
		put_ptr(w, first, w->l.tstate_datastack_top - 16, 5);
		assert_true(is_remembered(w, first, 5));
		assert_false(is_remembered(w, first, 4));
		put_ptr(w, first, w->l.tstate_datastack_top - 16, 0xa5a5a5a5a5a5a5a5);
	}
	/* Freed, and its memory another thread's by now; or no memory at all. */
	assert_int_equal(leaf_with_cache(w, foreign, &result), code);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		assert_int_equal(leaf_with_cache(w, wild[i], &result), code);
		assert_int_equal(result, WALK_OK);
	}
	second = make_thread(w, make_interp(w), THREAD, make_frame(w, code_2, 0, 0));
	if (w->l.tstate_status) {
		/* Whatever is remembered: the one that was attached last. */
		set_status(w, first, STATUS_BEFORE);
		assert_int_equal(leaf_with_cache(w, first, &result), code_2);
		assert_int_equal(leaf_with_cache(w, second, &result), code_2);
		/* Deleted, and its memory is as it was. */
		set_status(w, second, STATUS_DELETED);
		set_status(w, first, STATUS_LAST);
		assert_int_equal(leaf_with_cache(w, second, &result), code);
		set_status(w, first, STATUS_DELETED);
		assert_int_equal(leaf_with_cache(w, first, &result), 0);
		assert_int_equal(result, WALK_NO_THREAD_STATE);
	} else {
		/* With several interpreters the thread may have attached another one since: what was remembered is not
		 * believed. */
		uint64_t leaf = leaf_with_cache(w, 0, &result);

		assert_int_equal(leaf_with_cache(w, first, &result), leaf);
		assert_int_equal(leaf_with_cache(w, second, &result), leaf);
	}
	put_ptr(w, first, w->l.tstate_thread_id, THREAD_2);
	put_ptr(w, second, w->l.tstate_thread_id, THREAD_2);
	assert_int_equal(leaf_with_cache(w, first, &result), 0);
	assert_int_equal(result, WALK_NO_THREAD_STATE);
	put_ptr(w, w->proc.interp_head, 0, 0);
	assert_int_equal(leaf_with_cache(w, 0, &result), 0);
	assert_int_equal(result, WALK_NO_INTERPRETER);
}
LAYOUT_TEST(remembered_thread_state)

/* Memory that has been paged out does not prove that the thread runs no Python, nor that there is no interpreter. */
static void unreadable_lists(struct world *w)
{
	uint64_t code = make_code(w, 1), interp = make_interp(w), head;
	uint64_t tstate = make_thread(w, interp, THREAD, make_frame(w, code, 0, 0));
	uint64_t newer = make_thread(w, interp, THREAD_2, make_frame(w, code, 0, 0));
	int result;

	put_ptr(w, newer, w->l.tstate_next, UNMAPPED);
	assert_int_equal(leaf_with_cache(w, 0, &result), 0);
	assert_int_equal(result, WALK_UNREADABLE);
	put_ptr(w, newer, w->l.tstate_next, tstate);
	put_ptr(w, interp, w->l.interp_next, UNMAPPED);
	put_ptr(w, tstate, w->l.tstate_thread_id, THREAD_2);
	assert_int_equal(leaf_with_cache(w, 0, &result), 0);
	assert_int_equal(result, WALK_UNREADABLE);
	put_ptr(w, interp, w->l.interp_next, 0);
	assert_int_equal(leaf_with_cache(w, 0, &result), 0);
	assert_int_equal(result, WALK_NO_THREAD_STATE);
	/* Before there is an interpreter nobody may have touched the page that will tell of it. */
	head = w->proc.interp_head;
	w->proc.interp_head = UNMAPPED;
	assert_int_equal(leaf_with_cache(w, 0, &result), 0);
	assert_int_equal(result, WALK_NO_INTERPRETER);
	assert_int_equal(leaf_with_cache(w, tstate, &result), 0);
	assert_int_equal(result, WALK_UNREADABLE);
	w->proc.interp_head = head;
}
LAYOUT_TEST(unreadable_lists)

static uint64_t other_interp;

/* Two thread states of one thread, as if the C stack were the arena: what is made later is further out. */
static void callers_in_another_state(struct world *w)
{
	bool proved = w->l.tstate_cframe != NO || w->l.frame_owner != NO;
	uint64_t code[2] = {make_code(w, 1), make_code(w, 2)}, tstate[2];

	other_interp = make_interp(w);
	for (int i = 0; i < 2; i++)
		tstate[i] = make_thread(w, i ? make_interp(w) : other_interp, THREAD, make_frame(w, code[i], 0, 0));
	w->proc.tstate_current = make(w, 8);
	for (int inner = 0; inner < 2; inner++) {
		struct walk_stack stack;

		put_ptr(w, w->proc.tstate_current, 0, w->l.tstate_status ? 0 : tstate[inner]);
		set_status(w, tstate[inner], STATUS_LAST);
		set_status(w, tstate[!inner], STATUS_BEFORE);
		assert_walk(w, THREAD, &stack);
		assert_int_equal(stack.frames[0].code, code[inner]);
		if (proved && !inner) {
			assert_int_equal(stack.flags, 0);
			assert_int_equal(stack.depth, 3);
			assert_int_equal(stack.frames[1].kind, PYBPF_FRAME_MARKER);
			assert_int_equal(stack.frames[1].code, PYBPF_MARKER_INTERPRETER);
			assert_int_equal(stack.frames[2].code, code[1]);
		} else {
			assert_int_equal(stack.flags, PYBPF_STACK_NO_CALLERS);
			assert_int_equal(stack.depth, 1);
		}
		free(stack.frames);
	}
	/* Without frames it is no caller; one that runs nothing yet has its maker's frames. */
	set_frame(w, tstate[0], 0);
	assert_one_code(w, THREAD, code[1]);
	put_ptr(w, w->proc.tstate_current, 0, w->l.tstate_status ? 0 : tstate[0]);
	set_status(w, tstate[0], STATUS_LAST);
	set_status(w, tstate[1], STATUS_BEFORE);
	assert_one_code(w, THREAD, code[1]);
}
LAYOUT_TEST(callers_in_another_state)

/* In whichever order their interpreters were made, the C stack has the thread states from the inside out. */
static void nested_callers(struct world *w)
{
	uint64_t code[5], tstate[5], interp[5];

	if (w->l.tstate_cframe == NO && w->l.frame_owner == NO)
		return;
	for (int i = 0; i < 5; i++)
		interp[i] = make_interp(w);
	for (int count = 2; count <= 5; count++) {
		struct walk_stack stack;

		for (int i = 0; i < 5; i++)
			put_ptr(w, interp[i], w->l.interp_threads_head, 0);
		for (int i = 0; i < count; i++) {
			code[i] = make_code(w, i + 1);
			tstate[i] = make_thread(w, interp[(i * 3 + 1) % 5], THREAD, make_frame(w, code[i], 0, 0));
			set_status(w, tstate[i], i ? STATUS_BEFORE : STATUS_LAST);
		}
		assert_walk(w, THREAD, &stack);
		/* Beyond WALK_STATES, some are not known. */
		assert_int_equal(stack.flags, count > WALK_STATES ? PYBPF_STACK_NO_CALLERS : 0);
		if (count <= WALK_STATES) {
			assert_int_equal(stack.depth, 2 * count - 1);
			for (int i = 0; i < count; i++)
				assert_int_equal(stack.frames[2 * i].code, code[i]);
		}
		free(stack.frames);
	}
}
LAYOUT_TEST(nested_callers)

/* Gives each of these thread states a new frame, further out than the one before. The first is attached. */
static void nest(struct world *w, const uint64_t *tstates, const uint64_t *codes, int count)
{
	for (int i = 0; i < count; i++) {
		put_ptr(w, tstates[i], w->l.tstate_thread_id, THREAD);
		set_frame(w, tstates[i], make_frame(w, codes[i], 0, 0));
		set_status(w, tstates[i], i ? STATUS_BEFORE : STATUS_LAST);
	}
}

static void assert_nested(const struct walk *k, const uint64_t *codes, uint32_t count)
{
	assert_int_equal(k->stack.flags, 0);
	assert_int_equal(k->stack.depth, 2 * count - 1);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(k->frames[2 * i].code, codes[i]);
}

/* A subinterpreter in another one's, whose thread state lies where its caller's lay when main was its only caller. */
static void remembered_callers_of_another_loop(struct world *w)
{
	uint64_t codes[3], tstates[3], current;
	struct walk *before, *again, *now;

	if (w->l.tstate_cframe == NO && w->l.frame_owner == NO)
		return;
	for (int i = 0; i < 3; i++) {
		codes[i] = make_code(w, i + 1);
		tstates[i] = make_thread(w, make_interp(w), THREAD_2, 0);
	}
	make(w, WALK_TSTATE_SIZE); /* the C stack is elsewhere */
	current = w->l.tstate_status ? 0 : tstates[0];
	nest(w, (const uint64_t[]){tstates[0], tstates[2]}, (const uint64_t[]){codes[1], codes[2]}, 2);
	before = kernel_walk_again(w, current, NULL, NULL, 0);
	assert_nested(before, (const uint64_t[]){codes[1], codes[2]}, 2);
	again = kernel_walk_again(w, current, &before->states, NULL, 0);
	assert_true(again->remembered);
	assert_nested(again, (const uint64_t[]){codes[1], codes[2]}, 2);
	nest(w, tstates, codes, 3);
	now = kernel_walk_again(w, current, &again->states, NULL, 0);
	assert_nested(now, codes, 3);
	free(before);
	free(again);
	free(now);
}
LAYOUT_TEST(remembered_callers_of_another_loop)

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
		cmocka_unit_test(test_unreadable_lists),
		cmocka_unit_test(test_callers_in_another_state),
		cmocka_unit_test(test_nested_callers),
		cmocka_unit_test(test_remembered_callers_of_another_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
