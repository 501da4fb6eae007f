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

/* Python calls C, which calls Python. */
static void runs_within_runs(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), c = make_code(w, 3), cframes = make(w, 1024) + 960;
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, 0);
	uint64_t outer = make_frame(w, a, 0, 0), inner;

	enter_run(w, tstate, cframes, 0, outer);
	assert_one_code(w, THREAD, a);
	inner = make_frame(w, c, 0, make_first_frame(w, b, outer));
	enter_run(w, tstate, cframes, 1, inner);
	assert_codes(w, THREAD, (const uint64_t[]){c, b, a}, 3, 0);
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
	if (w->l.cframe_frame != NO)
		return; /* see test_walk_data_stack.c */
	put_ptr(w, generator, w->l.frame_previous, 0);
	if (!w->l.tstate_datastack_top) {
		/* Up to 3.10 the order is right, and a chain that ends is a chain. */
		assert_codes(w, THREAD, (const uint64_t[]){g}, 1, 0);
		return;
	}
	assert_int_equal(leaf_with_registers(w, registers, ARRAY_SIZE(registers), &depth, &flags), b);
	assert_int_equal(depth, 2);
	assert_int_equal(flags, 0);
	/* In no register: not told. */
	assert_int_equal(leaf_with_registers(w, registers, 8, &depth, &flags), 0);
	assert_int_equal(depth, 0);
	assert_int_equal(flags, PYBPF_STACK_FAULT);
}
LAYOUT_TEST(generator_yields)

/* greenlet switches in 3.13+: all frames are linked to each other, past the entry frames, and the outermost to none. */
static void exposed_frames(struct world *w)
{
	uint64_t a = make_code(w, 1), b = make_code(w, 2), object = make(w, 64);
	uint64_t outer = make_frame(w, a, 0, 0), inner = make_frame(w, b, 0, outer), away = make_entry(w);
	uint64_t tstate = make_thread(w, make_interp(w), THREAD, inner);
	const uint64_t registers[] = {outer};
	uint32_t depth, flags;

	if (w->l.frame_owner == NO || w->l.cframe_frame != NO)
		return;
	put_ptr(w, outer, w->l.frame_previous, 0);
	put_ptr(w, outer, w->l.frame_position - 8, object);
	put_ptr(w, object, w->l.code_type + 16, outer);
	assert_codes(w, THREAD, (const uint64_t[]){b, a}, 2, 0);
	put(w, outer, w->l.frame_owner, 1, 1);
	assert_codes(w, THREAD, (const uint64_t[]){b, a}, 2, 0);
	/* A generator's that is alone may have stopped. */
	set_frame(w, tstate, outer);
	assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
	put(w, outer, w->l.frame_owner, 0, 1);
	assert_one_code(w, THREAD, a);
	/* Without a frame object, or with another's, it is a frame that is being pushed. */
	for (size_t i = 0; i < ARRAY_SIZE(wild_pointers); i++) {
		put_ptr(w, object, w->l.code_type + 16, wild_pointers[i]);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		put_ptr(w, object, w->l.code_type + 16, outer);
		put_ptr(w, outer, w->l.frame_position - 8, wild_pointers[i]);
		assert_codes(w, THREAD, NULL, 0, PYBPF_STACK_FAULT);
		put_ptr(w, outer, w->l.frame_position - 8, object);
	}
	/* No register is believed to have such a stack: it may be another greenlet's. */
	set_frame(w, tstate, inner);
	put_ptr(w, inner, w->l.frame_previous, 0);
	assert_int_equal(leaf_with_registers(w, registers, ARRAY_SIZE(registers), &depth, &flags), 0);
	assert_int_equal(flags, PYBPF_STACK_FAULT);
	put_ptr(w, outer, w->l.frame_previous, away);
	assert_int_equal(leaf_with_registers(w, registers, ARRAY_SIZE(registers), &depth, &flags), a);
}
LAYOUT_TEST(exposed_frames)

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
		cmocka_unit_test(test_exposed_frames),
		cmocka_unit_test(test_popped_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
