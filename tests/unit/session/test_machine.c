// SPDX-License-Identifier: Apache-2.0
/* What /proc says of the whole machine. */
#include "session/account/machine.h"

#include <unistd.h>

#include "profiles.h"

static void test_stat(void **state)
{
	struct session_machine machine = {-1, -1, -1};
	double ticks = (double)sysconf(_SC_CLK_TCK);

	(void)state;
	/* Neither idle nor waiting for a disk; guests are users already. */
	session_machine_parse_stat("cpu  1000 200 30 7000 500 4 6 80 900 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n", &machine);
	assert_true(machine.busy_s * ticks > 1239.9 && machine.busy_s * ticks < 1240.1);
	assert_true(machine.stolen_s * ticks > 79.9 && machine.stolen_s * ticks < 80.1);
	assert_true(machine.waited_s < 0);
}

static void test_pressure(void **state)
{
	struct session_machine machine = {-1, -1, -1};

	(void)state;
	session_machine_parse_pressure("full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", &machine);
	assert_true(machine.waited_s < 0);
	session_machine_parse_pressure("some avg10=6.65 avg60=1.46 avg300=9.06 total=2500000\nfull avg10=0 total=1\n",
				       &machine);
	assert_true(machine.waited_s > 2.499 && machine.waited_s < 2.501);
}

/* What was not known at the beginning or at the end is not there. */
static void test_facts(void **state)
{
	const struct session_machine begin = {100, -1, 5}, end = {107.5, 3, -1};
	struct profile *p = new_profile();
	struct session_machine bad = {-1, -1, -1};

	(void)state;
	session_machine_parse_stat("", &bad);
	session_machine_parse_stat("cpu 1 2 3", &bad);
	session_machine_parse_pressure("", &bad);
	assert_true(bad.busy_s < 0 && bad.stolen_s < 0 && bad.waited_s < 0);
	take_in(p, on(p, PROFILE_ROOT, "f", "", 1), process(p, 1, "x"), 2500);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 0}), 0);
	/* Values that are no CPU time cannot be subtracted. */
	assert_int_equal(session_machine_describe(&begin, &end, p), 0);
	assert_null(profile_find_fact(p, PROFILE_FACT_OTHERS));
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 1000000}), 0);
	assert_int_equal(session_machine_describe(&begin, &end, p), 0);
	assert_string_equal(profile_find_fact(p, PROFILE_FACT_OTHERS), "5.000");
	assert_null(profile_find_fact(p, PROFILE_FACT_STOLEN));
	assert_null(profile_find_fact(p, PROFILE_FACT_WAITED));
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
