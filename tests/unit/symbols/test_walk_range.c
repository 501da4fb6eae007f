// SPDX-License-Identifier: Apache-2.0
/* Walks of a thread whose id is known to lie in a range: arm64, while the C library's bias is not known. */
#define WALK_THREAD_RANGE 1
#include "walk_world.h"

#define POINTER (THREAD + 0x740) /* the thread pointer */

static struct walk *range_walk(struct world *w, uint64_t first, uint64_t last)
{
	struct walk *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	walked = w;
	k->thread_id = first;
	k->thread_last = last;
	k->interp_head = w->proc.interp_head;
	k->code_type = w->proc.code_type;
	walk_start(k, &w->l, 0, NULL);
	while (!walk_step(k, &w->l))
		;
	return k;
}

static void assert_found(struct world *w, uint64_t first, uint64_t last, uint64_t id, uint64_t code)
{
	struct walk *k = range_walk(w, first, last);

	if (leaf_code(k) != code)
		print_error("layout: %s\n", w->origin);
	assert_int_equal(leaf_code(k), code);
	assert_int_equal(k->result, code ? WALK_OK : WALK_NO_THREAD_STATE);
	if (code)
		assert_int_equal(k->thread_id, id);
	assert_int_equal(k->states.count, code != 0);
	free(k);
}

static void a_thread_in_the_range_is_found(struct world *w)
{
	uint64_t code = make_code(w, 1), interp = make_interp(w);

	make_thread(w, interp, THREAD - 8192, make_frame(w, make_code(w, 2), 0, 0));
	make_thread(w, interp, THREAD, make_frame(w, code, 0, 0));
	make_thread(w, interp, POINTER + 64, make_frame(w, make_code(w, 3), 0, 0));
	assert_found(w, POINTER - PYBPF_THREAD_BIAS_MAX, POINTER, THREAD, code);
	assert_found(w, THREAD, THREAD, THREAD, code);
	assert_found(w, POINTER, POINTER, 0, 0);
	assert_found(w, 0, 0, 0, 0);
}
LAYOUT_TEST(a_thread_in_the_range_is_found)

/* Another thread's stack, with its struct at the end, is right below this thread's struct. */
static void the_nearest_of_two_is_this_thread(struct world *w)
{
	uint64_t own = make_code(w, 1), other = make_code(w, 2), interp = make_interp(w);

	make_thread(w, interp, THREAD - 2048, make_frame(w, other, 0, 0));
	make_thread(w, interp, THREAD, make_frame(w, own, 0, 0));
	assert_found(w, POINTER - PYBPF_THREAD_BIAS_MAX, POINTER, THREAD, own);
	/* The other one's range ends below this thread's struct, as structs do not overlap. */
	assert_found(w, POINTER - 2048 - PYBPF_THREAD_BIAS_MAX, POINTER - 2048, THREAD - 2048, other);
	make_thread(w, interp, THREAD - 2040, make_frame(w, other, 0, 0));
	assert_found(w, POINTER - PYBPF_THREAD_BIAS_MAX, POINTER, THREAD, own);
}
LAYOUT_TEST(the_nearest_of_two_is_this_thread)

/* A process has one thread, and the register was not read: any thread state is its own, but none that has no thread. */
static void the_only_thread_has_any_state(struct world *w)
{
	uint64_t code = make_code(w, 1), interp = make_interp(w);

	make_thread(w, interp, 0, make_frame(w, make_code(w, 2), 0, 0));
	assert_found(w, 1, UINT64_MAX, 0, 0);
	make_thread(w, interp, THREAD, make_frame(w, code, 0, 0));
	assert_found(w, 1, UINT64_MAX, THREAD, code);
}
LAYOUT_TEST(the_only_thread_has_any_state)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_thread_in_the_range_is_found),
		cmocka_unit_test(test_the_nearest_of_two_is_this_thread),
		cmocka_unit_test(test_the_only_thread_has_any_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
