// SPDX-License-Identifier: Apache-2.0
/* The token of --http-token: one line, which a header of HTTP can carry. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "push/internal.h"

static int read_token(const char *bytes, size_t size, struct push_secrets *secrets, struct error *error)
{
	char path[] = "/tmp/test_secrets.XXXXXX";
	struct push_options options = {.token = path};
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	err = push_secrets_read(secrets, &options, error);
	unlink(path);
	return err;
}

static void the_first_line_is_the_token(void **state)
{
	static const char *const files[] = {"a token", "a token\n", "a token\r\nand a remark\n"};
	struct push_secrets secrets;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		assert_int_equal(read_token(files[i], strlen(files[i]), &secrets, &error), 0);
		assert_string_equal(secrets.headers, "\nAuthorization: Bearer a token\n");
		push_secrets_free(&secrets);
		push_secrets_free(&secrets);
	}
}

static void others_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *told;
	} files[] = {
		{"", 0, "is empty"},
		{"\n", 1, "is empty"},
		{"\r\nx", 3, "is empty"},
		{"to\tken", 6, "has a control character"},
		{"token\033[31m\n", 11, "has a control character"},
		{"token\177", 6, "has a control character"},
		{"to\0ken", 6, "has a NUL byte"},
	};
	struct push_secrets secrets;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		assert_int_equal(read_token(files[i].bytes, files[i].size, &secrets, &error), -EINVAL);
		assert_non_null(strstr(error.text, files[i].told));
		push_secrets_free(&secrets);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_line_is_the_token),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
