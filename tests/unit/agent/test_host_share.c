// SPDX-License-Identifier: Apache-2.0
/* Which hosts send on a day. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "agent/internal.h"

#define HOSTS  20000
#define DAY_NS UINT64_C(86400000000000)

static bool chosen(double share, unsigned host, uint64_t ns)
{
	char name[32];

	snprintf(name, sizeof(name), "node-%u.example", host);
	return agent_host_is_chosen(share, name, ns);
}

/* The share of hosts on a day, and of days of a host; hosts of one day are not those of the next. */
static void test_shares(void **unused)
{
	unsigned one = 0, both = 0, days = 0;

	(void)unused;
	for (unsigned i = 0; i < HOSTS; i++) {
		const bool today = chosen(0.1, i, 20000 * DAY_NS);

		one += today;
		both += today && chosen(0.1, i, 20001 * DAY_NS);
		days += chosen(0.1, 7, i * DAY_NS);
	}
	assert_in_range(one, HOSTS * 0.09, HOSTS * 0.11);
	assert_in_range(days, HOSTS * 0.09, HOSTS * 0.11);
	assert_in_range(both, HOSTS * 0.005, HOSTS * 0.015);
}

/* What it says holds for the whole day, in UTC, and with a larger share for those hosts, too. */
static void test_days(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 1000; i++) {
		const bool first = chosen(0.3, i, 20000 * DAY_NS);

		assert_int_equal(chosen(0.3, i, 20001 * DAY_NS - 1), first);
		assert_int_equal(chosen(0.3, i, 20000 * DAY_NS + DAY_NS / 2), first);
		assert_true(chosen(0.6, i, 20000 * DAY_NS) || !first);
		assert_true(chosen(1, i, i * DAY_NS));
	}
}

/* The same on every host and in every version: these are the hosts of one day. */
static void test_known(void **unused)
{
	static const unsigned want[] = {3, 16, 24, 28, 38, 39, 58};

	(void)unused;
	for (unsigned i = 0, n = 0; i < 60; i++) {
		assert_int_equal(chosen(0.1, i, 20784 * DAY_NS), n < 7 && i == want[n]);
		n += n < 7 && i == want[n];
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_days),
		cmocka_unit_test(test_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
