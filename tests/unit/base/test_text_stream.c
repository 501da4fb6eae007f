// SPDX-License-Identifier: Apache-2.0
/* A text that grows; that memory ends is tests/e2e/test_out_of_memory.py's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text_stream.h"

static void test_grows(void **unused)
{
	static const size_t sizes[] = {0, 1, 255, 256, 4096, 100000};

	(void)unused;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *text;
		size_t size;
		FILE *out = text_stream_open(&text, &size);

		assert_non_null(out);
		for (size_t n = 0; n < sizes[i]; n++)
			fputc('a' + (int)(n % 26), out);
		assert_int_equal(fclose(out), 0);
		assert_int_equal(size, sizes[i]);
		assert_int_equal(strlen(text), sizes[i]);
		for (size_t n = 0; n < sizes[i]; n++)
			assert_int_equal(text[n], 'a' + (int)(n % 26));
		free(text);
	}
}

/* More than an address space has: the text is not cut, there is none. */
static void test_too_large(void **unused)
{
	char *text, part[4096];
	size_t size, written = 0;
	FILE *out = text_stream_open(&text, &size);
	const size_t most = (size_t)64 << 20;

	(void)unused;
	memset(part, 'x', sizeof(part));
	assert_non_null(out);
	/* The sanitizer's allocator keeps to this, and returns NULL: see ASAN_OPTIONS below. */
	for (; written < 2 * most; written += sizeof(part))
		if (fwrite(part, 1, sizeof(part), out) != sizeof(part))
			break;
	assert_true(written < 2 * most);
	assert_int_equal(fclose(out), EOF);
	assert_null(text);
}

/* Read by the sanitizer before main(). */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's own. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=64:allocator_may_return_null=1";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
