// SPDX-License-Identifier: Apache-2.0
/* Texts of other programs: what is plain, and what becomes of the rest. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
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
	assert_character("\xc2\xad", 2, false);         /* U+00AD, an invisible hyphen */
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

static void assert_written(void (*write)(const char *, FILE *), const char *text, const char *want)
{
	char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	assert_non_null(out);
	write(text, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(got, want);
	free(got);
}

static void assert_json(const char *text, const char *want)
{
	assert_written(text_json, text, want);
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
	assert_written(text_json_bare, "<a>\"&\n\\", "\"<a>\\\"&\\u000a\\u005c\"");
}

/* Writes a code point as UTF-8. */
static void encode(unsigned c, char text[5])
{
	static const unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
	int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	for (int i = more; i; i--, c >>= 6)
		text[i] = (char)(0x80 | (c & 0x3f));
	text[0] = (char)(heads[more] | c);
	text[more + 1] = '\0';
}

/* No character is wider than it is measured: the C library judges. Scripts of one column are measured as such. */
static void test_widths(void **unused)
{
	unsigned wide = 0, narrow = 0;

	(void)unused;
	for (unsigned c = 0x20; c < 0x110000; c++) {
		int columns = c >= 0xd800 && c < 0xe000 ? -1 : wcwidth((wchar_t)c);
		char text[5];
		size_t got;
		bool plain;

		if (columns < 0)
			continue;
		encode(c, text);
		text_character(text, &plain);
		got = text_width(text);
		if (plain && got < (size_t)columns)
			print_error("U+%04X: %d columns, measured as %zu\n", c, columns, got);
		assert_true(!plain || got >= (size_t)columns);
		wide += columns == 2;
		if (columns == 1 && c < 0x2000 && c != 0xad) {
			assert_int_equal(got, 1);
			narrow++;
		}
	}
	assert_true(wide > 100000);
	assert_true(narrow > 4000);
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("caf\xc3\xa9"), 4);
	assert_int_equal(text_width("\xe6\x97\xa5\xe6\x9c\xac.py"), 7);
}

static void test_fits(void **unused)
{
	(void)unused;
	assert_int_equal(text_fit("caf\xc3\xa9s", 4), 5);
	assert_int_equal(text_fit("caf\xc3\xa9s", 3), 3);
	assert_int_equal(text_fit("caf\xc3\xa9s", 0), 0);
	assert_int_equal(text_fit("caf", 100), 3);
	assert_int_equal(text_fit("\xe6\x97\xa5\xe6\x9c\xac", 4), 6);
	assert_int_equal(text_fit("\xe6\x97\xa5\xe6\x9c\xac", 3), 3);
	assert_int_equal(text_fit("\xe6\x97\xa5\xe6\x9c\xac", 1), 0);
}

static void assert_short(const char *text, size_t width, const char *want)
{
	char *got = text_shorten(text, width);

	assert_non_null(got);
	assert_string_equal(got, want);
	free(got);
}

static void assert_end(const char *text, size_t width, const char *want)
{
	char *got = text_keep_end(text, width);

	assert_non_null(got);
	assert_string_equal(got, want);
	free(got);
}

static void test_shortens(void **unused)
{
	(void)unused;
	assert_short("", 0, "");
	assert_short("Server.run", 10, "Server.run");
	assert_short("Server.run", 9, "Ser...run");
	assert_short("Server.run", 8, "Ser...un");
	assert_short("Server.run", 3, "...");
	assert_short("Server.run", 2, "..");
	assert_short("Server.run", 0, "");
	/* A wide character that does not fit is left out: the result is narrower, never wider. */
	assert_short("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe5\x90\x8d", 8,
		     "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe5\x90\x8d");
	assert_short("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe5\x90\x8d", 7, "\xe6\x97\xa5...\xe5\x90\x8d");
	assert_short("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe5\x90\x8d", 5, "...");
	assert_end("shop/catalog.py:12", 18, "shop/catalog.py:12");
	assert_end("shop/catalog.py:12", 14, "...talog.py:12");
	assert_end("shop/catalog.py:12", 1, ".");
	/* What is not UTF-8 ends nothing. */
	assert_short("\xff\xff\xff\xff\xe6", 4, "\xff...");
}

/* A name of 4,000 characters fills the width exactly, with both of its ends. */
static void test_shortens_much(void **unused)
{
	char name[4001];

	(void)unused;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[0] = '<';
	name[sizeof(name) - 2] = '>';
	for (size_t width = 5; width < 200; width++) {
		char *got = text_shorten(name, width);

		assert_non_null(got);
		assert_int_equal(text_width(got), width);
		assert_int_equal(got[0], '<');
		assert_int_equal(got[strlen(got) - 1], '>');
		free(got);
	}
}

static void assert_wrapped(const char *text, size_t width, const char *want)
{
	char *got = NULL;
	size_t size;
	FILE *out = open_memstream(&got, &size);

	assert_non_null(out);
	text_wrap(text, 0, 2, width, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(got, want);
	free(got);
}

static void test_wraps(void **unused)
{
	(void)unused;
	assert_wrapped("", 10, "\n");
	assert_wrapped("one two three", 0, "one two three\n");
	assert_wrapped("one two three", 13, "one two three\n");
	assert_wrapped("one two three", 12, "one two\n  three\n");
	assert_wrapped("one two three", 7, "one two\n  three\n");
	assert_wrapped("one two three", 6, "one\n  two\n  thre\n  e\n");
	assert_wrapped("one\ntwo", 20, "one\n  two\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters), cmocka_unit_test(test_layout),
		cmocka_unit_test(test_printable),  cmocka_unit_test(test_json),
		cmocka_unit_test(test_widths),     cmocka_unit_test(test_fits),
		cmocka_unit_test(test_shortens),   cmocka_unit_test(test_shortens_much),
		cmocka_unit_test(test_wraps),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
