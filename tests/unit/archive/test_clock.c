// SPDX-License-Identifier: Apache-2.0
/* A clock that is set forward makes no epoch too old before an hour has passed. */
#include "profiles.h"
#include "archive/clock.h"

#define NOW  1795755720000u
#define BOOT 5000000u
#define YEAR (365u * 86400000u)
/* Between two looks. */
#define MINUTE 60000u

/* Looks once a minute at a clock that is so much ahead. Returns the last time that was believed. */
static uint64_t look(struct archive_clock *clock, uint64_t ahead_ms, unsigned from, unsigned to)
{
	uint64_t believed = 0;

	for (unsigned i = from; i <= to; i++)
		believed = archive_clock_now_ms(clock, NOW + ahead_ms + i * MINUTE, BOOT + i * MINUTE);
	return believed;
}

static void test_a_clock_that_goes(void **unused)
{
	struct archive_clock clock;

	(void)unused;
	archive_clock_begin(&clock, 0, NOW, BOOT);
	assert_int_equal(look(&clock, 0, 0, 100), NOW + 100 * MINUTE);
	assert_int_equal(look(&clock, 30000, 101, 101), NOW + 30000 + 101 * MINUTE);
	assert_int_equal(clock.doubted_ms, 0);
}

static void test_set_forward_and_back(void **unused)
{
	struct archive_clock clock;

	(void)unused;
	archive_clock_begin(&clock, 0, NOW, BOOT);
	look(&clock, 0, 0, 1);
	assert_int_equal(look(&clock, YEAR, 2, 50), NOW + 50 * MINUTE);
	assert_int_equal(look(&clock, 0, 51, 51), NOW + 51 * MINUTE);
	/* It is doubted anew. */
	assert_int_equal(look(&clock, YEAR, 52, 100), NOW + 100 * MINUTE);
}

static void test_set_forward_for_good(void **unused)
{
	struct archive_clock clock;

	(void)unused;
	archive_clock_begin(&clock, 0, NOW, BOOT);
	look(&clock, 0, 0, 1);
	assert_int_equal(look(&clock, YEAR, 2, 61), NOW + 61 * MINUTE);
	assert_int_equal(look(&clock, YEAR, 62, 62), NOW + YEAR + 62 * MINUTE);
	assert_int_equal(clock.doubted_ms, 0);
}

static void test_set_back(void **unused)
{
	struct archive_clock clock;

	(void)unused;
	archive_clock_begin(&clock, 0, NOW + YEAR, BOOT);
	assert_int_equal(look(&clock, 0, 0, 0), NOW);
}

static void test_wrong_at_the_start(void **unused)
{
	struct archive_clock clock;

	(void)unused;
	archive_clock_begin(&clock, NOW, NOW + YEAR, BOOT);
	assert_int_equal(look(&clock, YEAR, 0, 59), NOW + 59 * MINUTE);
	assert_int_equal(look(&clock, YEAR, 60, 60), NOW + YEAR + 60 * MINUTE);
	/* A newest epoch of the future is no reason to believe that future. */
	archive_clock_begin(&clock, NOW + YEAR, NOW, BOOT);
	assert_int_equal(look(&clock, 0, 0, 0), NOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_clock_that_goes),    cmocka_unit_test(test_set_forward_and_back),
		cmocka_unit_test(test_set_forward_for_good), cmocka_unit_test(test_set_back),
		cmocka_unit_test(test_wrong_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
