// SPDX-License-Identifier: Apache-2.0
/* The tables are what CPython's compiler made of small functions, as `code.co_exceptiontable` prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "symbols/exception_table.h"

/*
 * 3.13: with one: with two: pass. dis says of its instructions: 24 to 26 -> 1 item, 27 to 29 -> 2, 29 to 37 -> 1, and
 * their handlers 46 to 55 -> 4, 56 to 62 -> 1, 63 to 72 -> 3.
 */
static const uint8_t nested[] = "\x98\x03?\x03\x9b\x01.\x05\x9d\x08?\x03\xae\n<\t\xb8\x07?\x03\xbf\nA\r\x07";

static void test_depths(void **unused)
{
	static const struct {
		uint32_t from, to, depth;
	} ranges[] = {{0, 23, 0},  {24, 26, 1}, {27, 27, 2}, {28, 28, 0}, {29, 36, 1},
		      {37, 45, 0}, {46, 55, 4}, {56, 62, 1}, {63, 72, 3}, {73, 1000, 0}};

	(void)unused;

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		for (uint32_t at = ranges[i].from; at <= ranges[i].to; at++)
			assert_int_equal(py_exception_depth(nested, sizeof(nested) - 1, at), ranges[i].depth);
	}
}

static void test_empty(void **unused)
{
	(void)unused;

	assert_int_equal(py_exception_depth(NULL, 0, 0), 0);
}

/* A table that ends within an entry, and bytes of all values: it ends, and reads nothing beyond. */
static void test_malformed(void **unused)
{
	uint8_t endless[64];
	(void)unused;

	for (size_t size = 0; size < sizeof(nested); size++) {
		uint8_t *copy = malloc(size ? size : 1);

		assert_non_null(copy);
		memcpy(copy, nested, size);
		for (uint32_t at = 0; at < 80; at++)
			assert_in_range(py_exception_depth(copy, size, at), 0, 4);
		free(copy);
	}
	/* Numbers without an end. */
	memset(endless, 0x7f, sizeof(endless));
	assert_int_equal(py_exception_depth(endless, sizeof(endless), 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
