// SPDX-License-Identifier: Apache-2.0
/* What a run says of the GIL. */
#include "session/waits/gil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_printed(const struct session_gil_account *account, uint64_t waited_ns, const char *want)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	session_gil_print(account, waited_ns, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, want);
	free(text);
}

/* Times have a unit in which they are not 0. */
static void test_short_times(void **unused)
{
	struct session_gil_account account = {
		.waits = 3,
		.longest_ns = 21000,
		.nr_holders = 2,
		.holders = {{.where = "keeps (app.py:4)", .count = 2, .ns = 28400, .longest_ns = 21000},
			    {.where = "main (app.py:9)", .count = 1, .ns = 300, .longest_ns = 300}},
	};

	(void)unused;
	assert_printed(&account, 28700,
		       "pybpf: 3 waits for the GIL, 29 us, longest 21 us; held, as each began and after each switch "
		       "interval, in:\n"
		       "pybpf:   keeps (app.py:4) blocked 2 waits, 28 us, longest 21 us\n"
		       "pybpf:   main (app.py:9) blocked 1 wait, 1 us, longest 1 us\n");
	account.waits = 26;
	account.longest_ns = 99500000;
	account.nr_holders = 1;
	account.holders[0].ns = 1245000000;
	assert_printed(&account, 1245000000,
		       "pybpf: 26 waits for the GIL, 1.245 s, longest 99.5 ms; held, as each began and after each "
		       "switch interval, in:\n"
		       "pybpf:   keeps (app.py:4) blocked 2 waits, 1.245 s, longest 21 us\n");
}

static void test_no_waits(void **unused)
{
	const struct session_gil_account account = {0};

	(void)unused;
	assert_printed(&account, 0, "pybpf: 0 waits for the GIL\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_times),
		cmocka_unit_test(test_no_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
