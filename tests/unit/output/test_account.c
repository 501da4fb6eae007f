// SPDX-License-Identifier: Apache-2.0
/* The account in sentences. */
#include "profiles.h"

static void assert_account(const struct profile *p, const char *want)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	output_account(p, "> ", out);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void test_groups(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	assert_account(p, "");
	profile_add_account(p, "lost", "a", "that were lost", 0);
	assert_account(p, "");
	profile_add_account(p, "asked", "b", "in the process", 5);
	profile_add_account(p, "lost", "c", "in the ring", 2);
	profile_add_account(p, "lost", "e", "on the way\n\x1b[2J", 3);
	assert_account(p, "> lost: 2 in the ring; 3 on the way\\x0a\\x1b[2J\n"
			  "> asked: 5 in the process\n");
	/* What was lost is not known of each process: it is that of all, whatever filters let pass. */
	profile_add_account(p, PROFILE_ACCOUNT_LEFT_OUT, "d", "by filters", 7);
	profile_add_account(p, PROFILE_ACCOUNT_STATES, "lock", "lock", 1000000000);
	assert_account(p, "> without filters, lost: 2 in the ring; 3 on the way\\x0a\\x1b[2J\n"
			  "> without filters, asked: 5 in the process\n"
			  "> left out: 7 by filters\n"
			  "> 1.00 thread-seconds: 100.0 % lock\n");
	profile_free(p);
}

static void test_run(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "f", "a.py", 1), process(p, 1, "x"), 9);
	profile_set_fact(p, PROFILE_FACT_HOST, "a\nb");
	assert_account(p, "");
	profile_set_fact(p, PROFILE_FACT_DURATION, "1.500");
	assert_account(p, "> 1.500 s, host a\\x0ab; 9 samples here\n");
	profile_set_fact(p, PROFILE_FACT_FREQ, "99");
	profile_set_fact(p, PROFILE_FACT_EVENT, "cycles");
	assert_account(p, "> 1.500 s at 99 Hz on cycles, host a\\x0ab; 9 samples here\n");
	profile_free(p);
}

/* Time of suspended tasks is of no thread. */
static void test_suspended_tasks(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), f = on(p, PROFILE_ROOT, "f", "a.py", 1);

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	take_in(p, f, owner, 1000000);
	take_in(p, profile_add_stack(p, f, profile_add_wait(p, PROFILE_STATE_SUSPENDED, "[awaits: Future]", 0)), owner,
		2500000);
	profile_set_fact(p, PROFILE_FACT_DURATION, "1.500");
	assert_account(p, "> 1.500 s; 1.000 s of wall time here, and 2.500 s of suspended tasks\n");
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_suspended_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
