// SPDX-License-Identifier: Apache-2.0
/* Names of code made at run time, and lines that are not those of perf maps. */
#include "native/perf_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 3

static struct native_named named[COUNT];

/* Finds the names of the addresses 0x100, 0x200 and 0x300. */
static void find(const char *text)
{
	FILE *in = fmemopen((char *)(uintptr_t)text, strlen(text), "r");

	assert_non_null(in);
	memset(named, 0, sizeof(named));
	for (size_t i = 0; i < COUNT; i++)
		named[i].address = 0x100 * (i + 1);
	native_perf_map_find(in, named, COUNT);
	fclose(in);
}

static void check(size_t i, const char *symbol, uint64_t start)
{
	assert_string_equal(named[i].symbol, symbol);
	assert_int_equal(named[i].start, start);
}

static void test_names(void **state)
{
	(void)state;
	find("f0 11 py::first:/app.py\n200 100 a name with spaces\n");
	check(0, "py::first:/app.py", 0xf0);
	check(1, "a name with spaces", 0x200);
	check(2, "", 0);
}

static void test_the_last_name_holds(void **state)
{
	(void)state;
	find("200 10 old\n0x1f0 20 new\r\n300 1 last");
	check(1, "new", 0x1f0);
	check(2, "last", 0x300);
}

static void test_lines_that_are_none(void **state)
{
	(void)state;
	find("\nname\n200\n200 10\n200 10 \n200 0 empty\n200 -1 huge\nffffffffffffff00 fff wraps\n100 10 a\tb\x7f\n");
	check(0, "a?b?", 0x100);
	check(1, "", 0);
	check(2, "", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_the_last_name_holds),
		cmocka_unit_test(test_lines_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
