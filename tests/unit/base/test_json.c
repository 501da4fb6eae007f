// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/json.h"

static void test_nested(void **unused)
{
	char *text = NULL;
	size_t size;
	struct json j = {.out = open_memstream(&text, &size)};

	(void)unused;
	json_begin_object(&j, NULL);
	json_string(&j, "a\"b", "</script>\n\xff");
	json_begin_array(&j, "list");
	json_uint(&j, NULL, UINT64_MAX);
	json_begin_object(&j, NULL);
	json_end_object(&j);
	json_begin_array(&j, NULL);
	json_end_array(&j);
	json_int(&j, NULL, INT64_MIN);
	json_end_array(&j);
	json_bool(&j, "yes", true);
	json_null(&j, "none");
	json_double(&j, "half", 0.5);
	json_begin_array(&j, "decimals");
	json_decimal(&j, NULL, 0, 3);
	json_decimal(&j, NULL, 12345678, 6);
	json_decimal(&j, NULL, 12000, 3);
	json_decimal(&j, NULL, 1001, 3);
	json_decimal(&j, NULL, 7, 0);
	json_decimal(&j, NULL, UINT64_MAX, 19);
	json_end_array(&j);
	json_double(&j, "nan", NAN);
	json_end_object(&j);
	json_line(&j);
	json_bool(&j, NULL, false);
	assert_int_equal(fclose(j.out), 0);
	assert_string_equal(text,
			    "{\"a\\\"b\":\"\\u003c/script\\u003e\\u000a\\ufffd\",\"list\":[18446744073709551615,{},[],"
			    "-9223372036854775808],\"yes\":true,\"none\":null,\"half\":0.5,"
			    "\"decimals\":[0,12.345678,12,1.001,7,1.8446744073709551615],\"nan\":null}\nfalse");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_nested)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
