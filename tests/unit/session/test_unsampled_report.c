// SPDX-License-Identifier: Apache-2.0
/* Which counts of samples are too few for the CPU time. */
#include "session/account/unsampled_report.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_few_samples(void **state)
{
	(void)state;
	assert_false(session_samples_are_few(0, 0));
	assert_false(session_samples_are_few(0, 10));
	assert_true(session_samples_are_few(0, 20));
	/* 81 of 100 may be chance, 810 of 1,000 are not. */
	assert_false(session_samples_are_few(81, 100));
	assert_true(session_samples_are_few(810, 1000));
	/* A twentieth of many samples may be due to the clocks. */
	assert_false(session_samples_are_few(96000, 100000));
	assert_true(session_samples_are_few(94000, 100000));
	assert_false(session_samples_are_few(120, 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
