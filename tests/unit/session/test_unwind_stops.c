// SPDX-License-Identifier: Apache-2.0
/* Instructions at which searches have ended: which are asked for. */
#include "session/native/unwind_stops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct native_ahead_rows answer;
static const struct native_source source = {.pid = 1};

static void add(struct native_stops *s, uint32_t pc, double now)
{
	native_stops_add(s, &(struct native_stop){pc, 1}, now);
}

static void test_each_is_asked_for_once(void **state)
{
	struct native_stops *s = native_stops_new();
	struct native_stop out[NATIVE_STOPS_MAX];

	(void)state;
	assert_false(native_stops_are_due(s, 0));
	add(s, 7, 0);
	add(s, 7, 0);
	add(s, 9, 0);
	assert_true(native_stops_are_due(s, 0));
	assert_int_equal(native_stops_next(s, &source, out), 2);
	/* The question stays as it is until it is answered. */
	add(s, 11, 0);
	assert_int_equal(native_stops_next(s, &source, out), 2);
	assert_true(out[0].pc == 7 && out[1].pc == 9);
	native_stops_pass(s, NULL, 0, 1);
	assert_int_equal(native_stops_next(s, &source, out), 1);
	assert_int_equal(out[0].pc, 11);
	native_stops_pass(s, NULL, 0, 1);
	assert_false(native_stops_are_due(s, 100));
	native_stops_free(s);
}

static void test_what_has_a_row_and_ends_again_is_made_anew(void **state)
{
	struct native_stops *s = native_stops_new();
	struct native_stop out[NATIVE_STOPS_MAX];

	(void)state;
	add(s, 7, 0);
	add(s, 100, 0);
	native_stops_next(s, &source, out);
	answer.count = 1;
	answer.rows[0] = (struct native_ahead_row){4, 8, PYBPF_NATIVE_SP};
	native_stops_pass(s, &answer, 10, 1);
	/* Neither one without a row, nor a stack that was taken before the row was there. */
	add(s, 100, 20);
	add(s, 7, 10.5);
	assert_false(native_stops_are_due(s, 20));
	add(s, 7, 20);
	assert_true(native_stops_are_due(s, 20));
	assert_int_equal(native_stops_next(s, &source, out), 2);
	assert_true(s->is_anew);
	native_stops_free(s);
}

static void test_pauses_grow(void **state)
{
	struct native_stops *s = native_stops_new();
	struct native_stop out[NATIVE_STOPS_MAX];
	double now = 0, pause = 0;

	(void)state;
	for (uint32_t pc = 0; pc < 20; pc++) {
		add(s, pc, now);
		assert_false(pc && native_stops_are_due(s, now));
		now = s->next_at;
		assert_true(native_stops_are_due(s, now));
		native_stops_next(s, &source, out);
		native_stops_pass(s, NULL, now, 0.5);
		assert_true(s->next_at - now >= pause - 1e-9 && s->next_at - now <= 0.5 + 1e-9);
		pause = s->next_at - now;
	}
	assert_true(pause > 0.49);
	native_stops_free(s);
}

static void test_bounds(void **state)
{
	struct native_stops *s = native_stops_new();

	(void)state;
	for (uint32_t pc = 0; pc < 2 * NATIVE_STOPS_OF_FILE_MAX; pc++)
		add(s, pc, 0);
	assert_int_equal(s->known.count, NATIVE_STOPS_OF_FILE_MAX);
	native_stops_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_asked_for_once),
		cmocka_unit_test(test_what_has_a_row_and_ends_again_is_made_anew),
		cmocka_unit_test(test_pauses_grow),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
