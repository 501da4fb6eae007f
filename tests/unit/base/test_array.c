// SPDX-License-Identifier: Apache-2.0
/* Arrays that grow, and that keep what they have where they cannot. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/array.h"

struct item {
	uint32_t value;
	uint8_t bytes[20];
};

static void keeps_what_is_in_it(void **unused)
{
	struct item *items = NULL;
	size_t room = 0, moves = 0;

	(void)unused;
	for (uint32_t i = 0; i < 100000; i++) {
		size_t before = room;

		assert_int_equal(array_reserve(&items, &room, i + 1, sizeof(*items)), 0);
		assert_true(room > i);
		moves += room != before;
		items[i] = (struct item){.value = i};
	}
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(items[i].value, i);
	/* By half each time: the logarithm of 100,000 to the base of 1.5 is 28.4. */
	assert_true(moves < 40);
	free(items);
}

static void takes_many_at_once(void **unused)
{
	char *bytes = NULL;
	size_t room = 0;

	(void)unused;
	assert_int_equal(array_reserve(&bytes, &room, 0, 1), 0);
	assert_null(bytes);
	assert_int_equal(array_reserve(&bytes, &room, 5000, 1), 0);
	assert_true(room >= 5000);
	bytes[4999] = 1;
	free(bytes);
}

static void says_when_memory_is_exhausted(void **unused)
{
	uint32_t *items = NULL;
	size_t room = 0, before;

	(void)unused;
	assert_int_equal(array_reserve(&items, &room, 3, sizeof(*items)), 0);
	before = room;
	items[2] = 7;
	/* Bytes that would not fit into a size_t, and too many items. */
	assert_int_equal(array_reserve(&items, &room, SIZE_MAX / 2, sizeof(*items)), -ENOMEM);
	assert_int_equal(array_reserve(&items, &room, SIZE_MAX / 8, sizeof(*items)), -ENOMEM);
	assert_int_equal(room, before);
	assert_int_equal(items[2], 7);
	free(items);
}

static void counts_up_to_a_number(void **unused)
{
	const struct {
		uint32_t other;
		uint64_t number;
	} items[] = {{9, 10}, {9, 20}, {9, 20}, {9, UINT64_MAX}};
	const size_t size = sizeof(*items), offset = (size_t)((const char *)&items->number - (const char *)items);

	(void)unused;
	assert_int_equal(array_count_up_to(NULL, 0, size, offset, 10), 0);
	assert_int_equal(array_count_up_to(items, 4, size, offset, 9), 0);
	assert_int_equal(array_count_up_to(items, 4, size, offset, 10), 1);
	assert_int_equal(array_count_up_to(items, 4, size, offset, 19), 1);
	assert_int_equal(array_count_up_to(items, 4, size, offset, 20), 3);
	assert_int_equal(array_count_up_to(items, 3, size, offset, UINT64_MAX), 3);
	assert_int_equal(array_count_up_to(items, 4, size, offset, UINT64_MAX), 4);
}

/* Read by the sanitizer before main(). */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's own. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_is_in_it),
		cmocka_unit_test(takes_many_at_once),
		cmocka_unit_test(says_when_memory_is_exhausted),
		cmocka_unit_test(counts_up_to_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
