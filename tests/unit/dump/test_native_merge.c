// SPDX-License-Identifier: Apache-2.0
/* Which function of Python called each native frame, where both have as many runs of the loop, and where they have not.
 */
#include "dump/native.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dump/dump.h"

#define NONE    DUMP_NO_FRAME
#define WALKED  4
#define LONGEST 10

static struct dump_native_frame frames[LONGEST];

/*
 * Two runs of two functions each. native: the innermost frame first, 'L' a run of the loop, anything else a function of
 * C. Returns whether it fits.
 */
static bool merge(const char *native, bool is_whole, unsigned outermost)
{
	struct pybpf_frame walked[WALKED] = {{.entry = 0}, {.entry = 1}, {.entry = 0}, {.kind = outermost, .entry = 1}};
	uint32_t numbers[WALKED] = {3, 2, 1, 0};
	struct dump_thread thread = {
		.native = {.frames = frames, .count = strlen(native), .is_whole = is_whole},
		.walked = walked,
		.nr_walked = WALKED,
		.numbers = numbers,
		.nr_numbers = WALKED,
	};

	assert_true(thread.native.count <= LONGEST);
	for (size_t i = 0; i < thread.native.count; i++)
		frames[i] = (struct dump_native_frame){.is_loop = native[i] == 'L', .after = NONE};
	dump_native_merge(&thread);
	return thread.native.fits;
}

/* Asserts which frame, counted from the root, has called each function of C. */
static void check(const char *native, const uint32_t *callers)
{
	for (size_t i = 0; native[i]; i++) {
		if (native[i] != 'L')
			assert_int_equal(frames[i].after, callers[i]);
	}
}

static void test_as_many_runs(void **state)
{
	(void)state;
	assert_true(merge("cLcLc", true, 0));
	check("cLcLc", (const uint32_t[]){3, 0, 1, 0, NONE});
	assert_true(merge("LccL", true, 0));
	check("LccL", (const uint32_t[]){0, 1, 1, 0});
}

/* The innermost run has no function: what it has called, and what has called it, was called by the leaf. */
static void test_one_run_more(void **state)
{
	(void)state;
	assert_true(merge("cLcLcLc", true, 0));
	check("cLcLcLc", (const uint32_t[]){3, 0, 3, 0, 1, 0, NONE});
}

static void test_other_runs(void **state)
{
	(void)state;
	assert_false(merge("cLc", true, 0));
	assert_false(merge("cc", true, 0));
	assert_false(merge("cLcLcLcLc", true, 0));
	assert_false(merge("cLcLc", false, 0));
	assert_false(merge("cLcLcLc", false, 0));
	/* Frames in the middle were left out. */
	assert_false(merge("cLcLc", true, PYBPF_FRAME_MARKER));
	assert_false(merge("cLcLcLc", true, PYBPF_FRAME_MARKER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_many_runs),
		cmocka_unit_test(test_one_run_more),
		cmocka_unit_test(test_other_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
