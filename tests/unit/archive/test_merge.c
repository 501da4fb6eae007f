// SPDX-License-Identifier: Apache-2.0
/* The span of merged epochs. */
#include "profiles.h"
#include "archive/merge.h"

static struct archive_epoch epoch(uint64_t number, uint64_t begin_ms, uint64_t length_ms)
{
	return (struct archive_epoch){
		.span = {.begin_ms = begin_ms, .length_ms = length_ms, .first = number, .last = number}};
}

static void assert_span(const struct archive_epoch *first, const struct archive_epoch *last, uint64_t begin_ms,
			uint64_t length_ms)
{
	const struct archive_span span = archive_span_of(first, last);

	assert_int_equal(span.begin_ms, begin_ms);
	assert_int_equal(span.length_ms, length_ms);
	assert_int_equal(span.first, first->span.first);
	assert_int_equal(span.last, last->span.last);
}

static void test_one_after_the_other(void **unused)
{
	const struct archive_epoch epochs[] = {epoch(7, 1000000, 60000), epoch(8, 1060000, 60000)};

	(void)unused;
	assert_span(&epochs[0], &epochs[1], 1000000, 120000);
	assert_span(&epochs[1], &epochs[1], 1060000, 60000);
}

/* The span has every moment of each, wherever it was in the row. */
static void test_a_clock_that_is_set_back(void **unused)
{
	const struct archive_epoch epochs[] = {epoch(7, 3000000, 60000), epoch(8, 1000000, 60000),
					       epoch(9, 1060000, 60000)};

	(void)unused;
	assert_span(&epochs[0], &epochs[1], 1000000, 2060000);
	assert_span(&epochs[0], &epochs[2], 1000000, 2060000);
	assert_span(&epochs[1], &epochs[2], 1000000, 120000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_a_clock_that_is_set_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
