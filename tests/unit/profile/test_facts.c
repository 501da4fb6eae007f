// SPDX-License-Identifier: Apache-2.0
/* Facts with several values: each once, in order, within bounds, whatever is in them. */
#include "profiles.h"

#include <string.h>

static void join(struct profile *p, const char *value)
{
	assert_int_equal(profile_join_fact(p, "key", value), 0);
}

static void test_each_once(void **unused)
{
	struct profile *p = profile_new();

	(void)unused;
	assert_non_null(p);
	join(p, "3.1");
	assert_string_equal(profile_find_fact(p, "key"), "3.1");
	join(p, "3.11");
	join(p, "3.1");
	join(p, "3.11");
	join(p, "1");
	assert_string_equal(profile_find_fact(p, "key"), "3.1, 3.11, 1");
	profile_free(p);
}

/* A command line can begin with what separates values, or consist of it. */
static void test_separators_in_values(void **unused)
{
	struct profile *p = profile_new();

	(void)unused;
	assert_non_null(p);
	join(p, ", ");
	join(p, ", , x");
	join(p, "y");
	join(p, "y");
	assert_string_equal(profile_find_fact(p, "key"), ", , , , x, y");
	profile_free(p);
}

static void test_what_does_not_fit(void **unused)
{
	struct profile *p = profile_new();
	char value[600];

	(void)unused;
	assert_non_null(p);
	memset(value, 'v', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	join(p, value);
	value[0] = 'w';
	join(p, value);
	join(p, "short");
	value[0] = 'v';
	assert_memory_equal(profile_find_fact(p, "key"), value, sizeof(value) - 1);
	assert_string_equal(profile_find_fact(p, "key") + sizeof(value) - 1, ", short");
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once),
		cmocka_unit_test(test_separators_in_values),
		cmocka_unit_test(test_what_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
