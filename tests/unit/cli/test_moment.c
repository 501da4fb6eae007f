// SPDX-License-Identifier: Apache-2.0
/* Moments of --from and --to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "cli/moment.h"

/* 2026-11-27 12:00:00 UTC, which is 13:00:00 where the test is. */
#define NOW_MS 1795780800000ull
#define S_MS   1000ull
#define H_MS   (3600 * S_MS)

static int set_zone(void **unused)
{
	(void)unused;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	return 0;
}

static void assert_moment(const char *text, uint64_t after_ms, uint64_t wanted_ms)
{
	uint64_t ms = 0;

	assert_int_equal(cli_moment_read(text, NOW_MS, after_ms, &ms), 0);
	assert_int_equal(ms, wanted_ms);
}

static void test_moments(void **unused)
{
	(void)unused;
	assert_moment("-5m", 0, NOW_MS - 300 * S_MS);
	assert_moment("-1h30m", 0, NOW_MS - H_MS * 3 / 2);
	assert_moment("13:00", 0, NOW_MS);
	assert_moment("12:59:58", 0, NOW_MS - 2 * S_MS);
	/* Later today is yesterday's. */
	assert_moment("13:01", 0, NOW_MS - 24 * H_MS + 60 * S_MS);
	assert_moment("12:00Z", 0, NOW_MS);
	assert_moment("13:00Z", 0, NOW_MS - 23 * H_MS);
	assert_moment("2026-11-27 13:00", 0, NOW_MS);
	assert_moment("2026-11-27T12:00:00Z", 0, NOW_MS);
	assert_moment("2026-11-27", 0, NOW_MS - 13 * H_MS);
	/* In summer. */
	assert_moment("2026-07-01 02:00", 0, 1782864000000ull);
}

static void test_the_end_of_a_span(void **unused)
{
	const uint64_t from_ms = NOW_MS - 14 * H_MS; /* 23:00 of the day before */

	(void)unused;
	assert_moment("23:30", from_ms, from_ms + H_MS / 2);
	assert_moment("00:10", from_ms, from_ms + H_MS + 600 * S_MS);
	assert_moment("23:00", from_ms, from_ms);
}

static void test_other_texts(void **unused)
{
	static const char *const texts[] = {
		"",
		"now",
		"10",
		"10:0",
		"25:00",
		"10:60",
		"10:00 ",
		"-",
		"-5x",
		"2026-13-01",
		"2026-11-32",
		"2026-11-27 ",
		"2026-11-27 10",
		"10:00ZZ",
		"1:00",
		"+5m",
		"2026-11-27-10:00",
		"-99999999d",
		"Z",
	};
	uint64_t ms;

	(void)unused;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(cli_moment_read(texts[i], NOW_MS, 0, &ms), -EINVAL);
}

static void test_text(void **unused)
{
	char text[CLI_MOMENT_MAX];

	(void)unused;
	assert_string_equal(cli_moment_text(NOW_MS + 999, text), "2026-11-27 13:00:00");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments),
		cmocka_unit_test(test_the_end_of_a_span),
		cmocka_unit_test(test_other_texts),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, set_zone, NULL);
}
