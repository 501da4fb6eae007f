// SPDX-License-Identifier: Apache-2.0
/* Texts of other programs: what is plain, and what becomes of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "text.h"

static void assert_character(const char *text, size_t len, bool plain)
{
	bool got;

	assert_int_equal(text_character(text, &got), len);
	assert_int_equal(got, plain);
}

static void test_characters(void **unused)
{
	(void)unused;
	assert_character("a", 1, true);
	assert_character(" ", 1, true);
	assert_character("\xc3\xa9", 2, true);
	assert_character("\xe2\x82\xac", 3, true);
	assert_character("\xf0\x9f\x90\x8d", 4, true);
	assert_character("\n", 1, false);
	assert_character("\x7f", 1, false);
	assert_character("\xc2\x85", 2, false); /* U+0085, a line's end to some */
	assert_character("\xc2\xa0", 2, true);
	/* No UTF-8: alone, cut short, overlong, half of a surrogate pair, above U+10FFFF. */
	assert_character("\xff", 1, false);
	assert_character("\x80", 1, false);
	assert_character("\xe2\x82", 1, false);
	assert_character("\xc0\x80", 1, false);
	assert_character("\xed\xa0\x80", 1, false);
	assert_character("\xf4\x90\x80\x80", 1, false);
}

/* Every code point that lays out what is around it, by its number, and its neighbours, which do not. */
static void test_layout(void **unused)
{
	(void)unused;
	for (unsigned c = 0x2000; c < 0x2100; c++) {
		char text[] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)), '\0'};
		bool layout =
			c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);

		assert_character(text, 3, !layout);
	}
	assert_character("\xd8\x9c", 2, false); /* U+061C */
	assert_character("\xd8\x9b", 2, true);
}

static void test_utf8(void **unused)
{
	static const char *const texts[][2] = {
		{"", ""},
		{"na\xc3\xafve\n", "na\xc3\xafve\n"},
		{"\xff", "\xef\xbf\xbd"},
		{"a\xe2\x82z", "a\xef\xbf\xbd\xef\xbf\xbdz"},
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char *got = text_utf8(texts[i][0]);

		assert_string_equal(got, texts[i][1]);
		free(got);
	}
}

static void assert_json(const char *text, const char *want)
{
	char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	assert_non_null(out);
	text_json(text, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(got, want);
	free(got);
}

static void test_json(void **unused)
{
	(void)unused;
	assert_json("", "\"\"");
	assert_json("a\"b\\c\n<\xc3\xa9>\xff", "\"a\\\"b\\\\c\\u000a\\u003c\xc3\xa9\\u003e\\ufffd\"");
	/* Escaped by their code points: U+0085, U+061C, U+2028. */
	assert_json("\xc2\x85|\xd8\x9c|\xe2\x80\xa8", "\"\\u0085|\\u061c|\\u2028\"");
	assert_json("\xf0\x9f\x90\x8d&", "\"\xf0\x9f\x90\x8d\\u0026\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
