// SPDX-License-Identifier: Apache-2.0
/* Which segment of a file a mapping is of, where several have parts of one page of the file. */
#include "native/mapped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The second one begins in the page in which the first one ends, as `ld -z noseparate-code` lays out two of them. */
static const struct native_file file = {
	.nr_segments = 2,
	.segments = {{.offset = 0x1000, .size = 0x2400, .delta = 0x10000},
		     {.offset = 0x3400, .size = 0x1000, .delta = 0x20000}},
};

static uint64_t bias_at(uint64_t offset)
{
	struct pybpf_native_mapping m = {.start = 0x700000};

	return native_find_bias(&file, offset, &m) ? m.bias - m.start + offset : 0;
}

static void test_segments_that_share_a_page(void **state)
{
	(void)state;
	assert_int_equal(bias_at(0x1000), 0x10000);
	assert_int_equal(bias_at(0x3000), 0x20000);
}

/* mprotect() leaves the rest of a segment a mapping of its own. */
static void test_a_part_of_a_segment(void **state)
{
	(void)state;
	assert_int_equal(bias_at(0x2000), 0x10000);
	assert_int_equal(bias_at(0x4000), 0x20000);
}

static void test_no_segment(void **state)
{
	(void)state;
	assert_int_equal(bias_at(0), 0);
	assert_int_equal(bias_at(0x5000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments_that_share_a_page),
		cmocka_unit_test(test_a_part_of_a_segment),
		cmocka_unit_test(test_no_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
