// SPDX-License-Identifier: Apache-2.0
/* What an error holds, however long its sentence is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/error.h"

static void holds_code_and_sentence(void **unused)
{
	struct error error;

	(void)unused;
	assert_int_equal(error_set(&error, -ENOENT, "no file %s", "x"), -ENOENT);
	assert_int_equal(error.code, -ENOENT);
	assert_string_equal(error.text, "no file x");
	error_append(&error, " and no %d", 2);
	assert_string_equal(error.text, "no file x and no 2");
	assert_int_equal(error.code, -ENOENT);
	error_clear(&error);
	assert_int_equal(error.code, 0);
	assert_string_equal(error.text, "");
}

/* errno may change while the sentence is written: the code is what it was before. */
static void takes_errno_first(void **unused)
{
	struct error error;

	(void)unused;
	errno = EACCES;
	assert_int_equal(error_set(&error, -errno, "%s %d", "text", errno = 0), -EACCES);
	assert_int_equal(error.code, -EACCES);
}

static void cuts_what_is_too_long(void **unused)
{
	struct {
		struct error error;
		char behind[8];
	} e;

	(void)unused;
	memset(&e, 'x', sizeof(e));
	error_set(&e.error, -EIO, "%*s", 3 * ERROR_TEXT_MAX, "end");
	assert_int_equal(strlen(e.error.text), ERROR_TEXT_MAX - 1);
	error_append(&e.error, "more");
	assert_int_equal(strlen(e.error.text), ERROR_TEXT_MAX - 1);
	error_set(&e.error, -EIO, "%*s", ERROR_TEXT_MAX - 3, "end");
	error_append(&e.error, "more");
	assert_string_equal(e.error.text + ERROR_TEXT_MAX - 3, "mo");
	assert_memory_equal(e.behind, "xxxxxxxx", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_code_and_sentence),
		cmocka_unit_test(takes_errno_first),
		cmocka_unit_test(cuts_what_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
