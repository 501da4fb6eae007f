// SPDX-License-Identifier: Apache-2.0
/* Runs of pages that are taken and given back, without a kernel. */
#include "session/native/pages.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "played_native.h"

static struct native_pages begin(uint32_t most)
{
	struct native_pages p;

	chunks = 0;
	chunks_max = most;
	native_pages_init(&p, NULL);
	return p;
}

/* Programs may still read what was given back. */
static void test_what_is_given_back_is_not_used_at_once(void **state)
{
	struct native_pages p = begin(1);
	uint32_t first, other;

	(void)state;
	assert_int_equal(native_pages_take(&p, PYBPF_NATIVE_CHUNK_PAGES, 0, &first), 0);
	assert_int_equal(native_pages_take(&p, 1, 0, &other), -E2BIG);
	native_pages_give(&p, first, PYBPF_NATIVE_CHUNK_PAGES, 0);
	assert_int_equal(native_pages_take(&p, 1, 0.9, &other), -E2BIG);
	assert_int_equal(native_pages_take(&p, PYBPF_NATIVE_CHUNK_PAGES, 1.1, &other), 0);
	native_pages_free(&p);
}

/* A list that changes ten times a second takes no more room than two of it do. */
static void test_what_is_given_back_does_not_hold_up_the_rest(void **state)
{
	struct native_pages p = begin(64);
	uint32_t last = 0, next;

	(void)state;
	assert_int_equal(native_pages_take(&p, 1, 0, &last), 0);
	for (int i = 1; i < 1000; i++) {
		assert_int_equal(native_pages_take(&p, 1, i * 0.1, &next), 0);
		assert_int_not_equal(next, last);
		native_pages_give(&p, last, 1, i * 0.1);
		last = next;
	}
	assert_int_equal(chunks, 1);
	assert_int_equal(p.used, 1);
	/* All of it is one again. */
	native_pages_give(&p, last, 1, 100);
	assert_int_equal(native_pages_take(&p, PYBPF_NATIVE_CHUNK_PAGES, 200, &next), 0);
	assert_int_equal(chunks, 1);
	native_pages_free(&p);
}

/* What is free is one, wherever a run of it begins; what programs may still read is not free. */
static void test_room_that_is_there(void **state)
{
	struct native_pages p = begin(1);
	uint32_t first, runs[3];

	(void)state;
	assert_int_equal(native_pages_take(&p, PYBPF_NATIVE_CHUNK_PAGES - 3, 0, &first), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(native_pages_take(&p, 1, 0, &runs[i]), 0);
	assert_false(native_pages_have_room(&p, 1, 0));
	native_pages_give(&p, runs[0], 1, 0);
	native_pages_give(&p, runs[2], 1, 0);
	assert_false(native_pages_have_room(&p, 1, 0.9));
	assert_true(native_pages_have_room(&p, 1, 1.1));
	assert_false(native_pages_have_room(&p, 2, 1.1));
	native_pages_give(&p, runs[1], 1, 1);
	assert_false(native_pages_have_room(&p, 3, 1.1));
	assert_true(native_pages_have_room(&p, 3, 2.1));
	assert_false(native_pages_have_room(&p, 4, 2.1));
	native_pages_free(&p);
}

/* Tables of 10, 60 and 20 pages with free pages between them, and further ones that stay. */
static void test_tables_that_give_way(void **state)
{
	static const struct native_page_range tables[] = {{80, 20}, {15, 60}, {0, 10}};
	static const struct {
		uint32_t wanted, first, count;
	} cases[] = {
		{1, 10, 5},    /* nothing gives way */
		{15, 0, 15},   /* 10 pages of tables do */
		{16, 80, 20},  /* 20 */
		{21, 75, 25},  /* as many */
		{31, 15, 60},  /* 60 */
		{71, 0, 75},   /* 70 */
		{105, 0, 105}, /* all */
	};
	struct native_page_range chosen;
	struct native_pages p = begin(1);
	uint32_t first;

	(void)state;
	assert_int_equal(native_pages_take(&p, PYBPF_NATIVE_CHUNK_PAGES, 0, &first), 0);
	native_pages_give(&p, 10, 5, 0);
	native_pages_give(&p, 75, 5, 0);
	native_pages_give(&p, 100, 5, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(native_pages_choose(&p, tables, 3, cases[i].wanted, &chosen), 0);
		assert_int_equal(chosen.first, cases[i].first);
		assert_int_equal(chosen.count, cases[i].count);
	}
	assert_int_equal(native_pages_choose(&p, tables, 3, 106, &chosen), -ENOENT);
	native_pages_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_given_back_is_not_used_at_once),
		cmocka_unit_test(test_what_is_given_back_does_not_hold_up_the_rest),
		cmocka_unit_test(test_room_that_is_there),
		cmocka_unit_test(test_tables_that_give_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
