// SPDX-License-Identifier: Apache-2.0
/* Texts of other programs: what is plain, and what becomes of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"

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

/* Every code point of General Punctuation that is not seen: its Default_Ignorable_Code_Points and separators. */
static void test_layout(void **unused)
{
	(void)unused;
	for (unsigned c = 0x2000; c < 0x2100; c++) {
		char text[] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)), '\0'};
		bool unseen =
			(c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f);

		assert_character(text, 3, !unseen);
	}
	assert_character("\xd8\x9c", 2, false); /* U+061C */
	assert_character("\xd8\x9b", 2, true);
	assert_character("\xc2\xad", 2, false);         /* U+00AD, a hyphen that is not there */
	assert_character("\xef\xbb\xbf", 3, false);     /* U+FEFF, no space and no break */
	assert_character("\xf3\xa0\x81\x81", 4, false); /* U+E0041, the tag of an A */
	assert_character("\xf4\x8f\xbf\xbd", 4, true);  /* U+10FFFD */
}

static void assert_printable(const char *text, const char *want)
{
	char *copy = text_printable(text), *printed = NULL;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	assert_non_null(copy);
	assert_non_null(out);
	text_print(text, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(copy, want);
	assert_string_equal(printed, want);
	free(copy);
	free(printed);
}

static void test_printable(void **unused)
{
	char text[3 * 1000 + 1], want[12 * 1000 + 1];

	(void)unused;
	assert_printable("", "");
	assert_printable("na\xc3\xafve", "na\xc3\xafve");
	assert_printable("a\npybpf: b\r\033[2K", "a\\x0apybpf: b\\x0d\\x1b[2K");
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): that it misleads is its use. */
	assert_printable("\xe2\x80\xae\xff", "\\xe2\\x80\\xae\\xff");
	assert_printable("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81");
	for (size_t i = 0; i < 1000; i++) {
		/* NOLINTNEXTLINE(misc-misleading-bidirectional): that it misleads is its use. */
		memcpy(text + 3 * i, "\xe2\x80\xae", 4);
		memcpy(want + 12 * i, "\\xe2\\x80\\xae", 13);
	}
	assert_printable(text, want);
	assert_printable(text + 1, want + 4);
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
	assert_json("\xf3\xa0\x81\x81", "\"\\udb40\\udc41\""); /* U+E0041 */
	assert_json("\xf0\x9f\x90\x8d&", "\"\xf0\x9f\x90\x8d\\u0026\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_printable),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
