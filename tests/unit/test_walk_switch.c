// SPDX-License-Identifier: Apache-2.0
/* Runs of the evaluation loop inside one another, and samples that come while the interpreter goes between frames. */
#include "walk_world.h"

/* With registers; returns the leaf's code object, and the stack's depth and flags. */
static uint64_t leaf_with_registers(struct world *w, const uint64_t *registers, uint32_t count, uint32_t *depth,
				    uint32_t *flags)
{
	struct walk *k = kernel_walk(w, 0, registers, count);
	uint64_t leaf = leaf_code(k);

	*depth = k->stack.depth;
	*flags = k->stack.flags;
	free(k);
	return leaf;
}

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
	assert_int_equal(flags, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(generator_yields)

/*
 * gcc's 3.11 and 3.12 link a new run's cframe, and store its frame and the outer run's cframe together, some
 * instructions later: until then an earlier call's leavings are there.
 */
static void cframe_without_contents(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), c = make_code(w, 3), cframes = make(w, 8192) + 8000;
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, 0), cframe = cframes - 128;
	uint64_t outer = make_frame(w, a, 0, 0), inner, entered, entry, leavings, leftover;
	uint32_t depth, flags;

	if (w->l.cframe_frame == NO)
		return;
	enter_run(w, tstate, cframes, 0, outer);
	inner = make_frame(w, c, 0, make_first_frame(w, b, outer));
	enter_run(w, tstate, cframes, 1, inner);
	entered = make_first_frame(w, b, UNMAPPED);
	enter_run(w, tstate, cframes, 2, entered);
	put_ptr(w, cframe, w->l.cframe_frame + 8, 1);

	/* The outer run's cframe is in a register. */
	const uint64_t cframe_there[] = {1, entered, tstate, cframe, cframes - 64};
	assert_int_equal(leaf_with_registers(w, cframe_there, ARRAY_SIZE(cframe_there), &depth, &flags), c);
	assert_int_equal(depth, 3);
	assert_int_equal(flags, 0);
	/* The leavings name the outermost run's: the register is right. */
	put_ptr(w, cframe, w->l.cframe_frame + 8, cframes);
	assert_int_equal(leaf_with_registers(w, cframe_there, ARRAY_SIZE(cframe_there), &depth, &flags), c);
	put_ptr(w, cframe, w->l.cframe_frame + 8, 1);

	/* Only the outer run's frame is. */
	const uint64_t frame_there[] = {1, entered, tstate, cframe, inner};
	assert_int_equal(leaf_with_registers(w, frame_there, ARRAY_SIZE(frame_there), &depth, &flags), c);
	assert_int_equal(depth, 3);
	assert_int_equal(flags, 0);
	/* What lies nearer proves itself, and is not it. */
	leftover = cframe + 24;
	leavings = make_first_frame(w, c, outer);
	put_ptr(w, leftover, w->l.cframe_frame, leavings);
	put_ptr(w, leftover, w->l.cframe_frame + 8, cframes);
	assert_int_equal(leaf_with_registers(w, frame_there, ARRAY_SIZE(frame_there), &depth, &flags), c);
	assert_int_equal(depth, 3);

	/* Nothing in a register but the frame that is entered: there is no telling, not even by what lies around. */
	assert_int_equal(leaf_with_registers(w, frame_there, 4, &depth, &flags), 0);
	assert_int_equal(flags, PYBPF_STACK_FAULT);
	if (w->l.frame_owner == NO)
		return;
	/* In 3.12 its entry frame, beside the cframe, may know the outer run's frame; but what it knows may be old. */
	entry = cframe - 512;
	put_ptr(w, entered, w->l.frame_previous, entry);
	put_ptr(w, entry, w->l.frame_previous, inner);
	put(w, entry, w->l.frame_owner, w->l.owner_not_python, 1);
	assert_int_equal(leaf_with_registers(w, frame_there, 4, &depth, &flags), 0);
	put_ptr(w, leftover, w->l.cframe_frame, 0);
	assert_int_equal(leaf_with_registers(w, frame_there, 4, &depth, &flags), c);
	assert_int_equal(depth, 3);
	assert_int_equal(flags, 0);
	put_ptr(w, entry, w->l.frame_previous, outer);
	assert_int_equal(leaf_with_registers(w, frame_there, 4, &depth, &flags), 0);
	assert_int_equal(flags, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(cframe_without_contents)

/* 3.11 pops a frame from the data stack, and then unlinks it. */
static void popped_frame(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), c = make_code(w, 3);
	uint64_t caller = make_frame(w, b, 0, make_frame(w, a, 0, 0)), popped = make_frame(w, c, 0, caller);
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, popped);
	bool unlinks_later = w->l.frame_entry != NO;

	if (w->l.cframe_frame == NO)
		return;
	put_ptr(w, tstate, w->l.tstate_datastack_top, popped);
	put_ptr(w, tstate, w->l.tstate_datastack_top + 8, popped + 4096);
	assert_codes(w, THREAD, (const uint64_t[]){b, a}, unlinks_later ? 2 : 0, unlinks_later ? 0 : PYBPF_STACK_FAULT);
	/* The first frame of a run is popped after the run. */
	put(w, popped, w->l.frame_entry, 1, 1);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	put(w, popped, w->l.frame_entry, 0, 1);
	/* It is one and no more, and the last that was pushed. */
	put_ptr(w, tstate, w->l.tstate_datastack_top, caller);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	put_ptr(w, tstate, w->l.tstate_datastack_top, popped - 8);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(popped_frame)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_within_runs),
		cmocka_unit_test(test_generator_yields),
		cmocka_unit_test(test_cframe_without_contents),
		cmocka_unit_test(test_popped_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
