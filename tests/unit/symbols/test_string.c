// SPDX-License-Identifier: Apache-2.0
/* String headers as CPython writes them, decoding of every width, and bytes that are no string at all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "symbols/objects/string.h"

static struct pybpf_layout layout_of(int major, int minor, bool free_threaded)
{
	struct pybpf_layout layout = {0};
	uint16_t head = free_threaded ? 32 : 16; /* PyObject */

	layout.major = (uint16_t)major;
	layout.minor = (uint16_t)minor;
	layout.free_threaded = free_threaded;
	layout.str_length = head;
	layout.str_hash = head + 8;
	layout.str_state = head + 16;
	if (major == 2) {
		layout.string_kind = PYBPF_STR_BYTES;
		layout.str_ascii_data = 36;
		layout.str_compact_data = PYBPF_NO_OFFSET;
		layout.str_state = PYBPF_NO_OFFSET;
	} else {
		bool has_wstr = minor < 12;

		layout.str_kind_shift = free_threaded && minor >= 14 ? 8 : 2;
		layout.string_kind = PYBPF_STR_UNICODE;
		layout.str_ascii_data = head + 24 + (has_wstr ? 8 : 0);
		layout.str_compact_data = layout.str_ascii_data + 16 + (has_wstr ? 8 : 0);
	}
	return layout;
}

static int shape_of(const struct pybpf_layout *layout, int64_t length, uint32_t state, struct pysym_string_shape *shape)
{
	uint8_t header[PYSYM_STRING_HEADER];

	memset(header, 0xa5, sizeof(header));
	memcpy(header + layout->str_length, &length, sizeof(length));
	if (layout->str_state != PYBPF_NO_OFFSET)
		memcpy(header + layout->str_state, &state, sizeof(state));
	return pysym_string_read_shape(layout, header, shape);
}

static void assert_shape(int major, int minor, bool free_threaded, uint32_t state, int unit, bool latin1,
			 uint32_t data_offset)
{
	struct pybpf_layout layout = layout_of(major, minor, free_threaded);
	struct pysym_string_shape shape;

	assert_int_equal(shape_of(&layout, 5, state, &shape), 0);
	assert_int_equal(shape.unit, unit);
	assert_int_equal(shape.latin1, latin1);
	assert_int_equal(shape.data_offset, data_offset);
	assert_int_equal(shape.data_size, 5 * unit);
	assert_false(shape.cut);
}

/* State words read from live interpreters, with the garbage of their padding. */
static void test_states_of_live_interpreters(void **unused)
{
	(void)unused;

	assert_shape(3, 6, false, 0x000000e5, 1, false, 48);
	assert_shape(3, 6, false, 0x000000a4, 1, true, 72);
	assert_shape(3, 6, false, 0x000000a8, 2, false, 72);
	assert_shape(3, 6, false, 0x332a22b0, 4, false, 72);
	assert_shape(3, 11, false, 0x000000e4, 1, false, 48);
	assert_shape(3, 12, false, 0x00000066, 1, false, 40);
	assert_shape(3, 12, false, 0x00000024, 1, true, 56);
	assert_shape(3, 12, false, 0x3b379e28, 2, false, 56);
	assert_shape(3, 12, false, 0x00000030, 4, false, 56);
	assert_shape(3, 13, false, 0x000000e7, 1, false, 40);
	assert_shape(3, 14, false, 0x00000065, 1, false, 40);
	assert_shape(3, 14, false, 0x000000a7, 1, true, 56); /* the static "é" */
	assert_shape(3, 15, false, 0x00000065, 1, false, 40);
}

/* Composed from the headers: nothing else shifts the fields by a byte. */
static void test_states_of_free_threaded(void **unused)
{
	(void)unused;

	assert_shape(3, 13, true, 0x00000067, 1, false, 56); /* 3.13t: as with the GIL */
	assert_shape(3, 13, true, 0x00000028, 2, false, 72);
	assert_shape(3, 14, true, 0x00001903, 1, false, 56); /* interned 3; kind 1, compact, ascii */
	assert_shape(3, 14, true, 0xffff3901, 1, false, 56); /* statically allocated; garbage above */
	assert_shape(3, 14, true, 0x00000900, 1, true, 72);
	assert_shape(3, 14, true, 0x00000a00, 2, false, 72);
	assert_shape(3, 15, true, 0x00000c02, 4, false, 72);
	assert_shape(3, 16, true, 0x00000c02, 4, false, 72);
}

static void test_legacy_strings(void **unused)
{
	struct pybpf_layout old = layout_of(3, 8, false), now = layout_of(3, 13, false);
	struct pybpf_layout threaded = layout_of(3, 14, true);
	struct pysym_string_shape shape;
	(void)unused;

	assert_int_equal(shape_of(&old, 5, 0x00, &shape), -ENOTSUP); /* not ready: wchar_t alone */
	assert_int_equal(shape_of(&old, 5, 0xc4, &shape), -ENOTSUP); /* a subclass of str */
	assert_int_equal(shape_of(&now, 5, 0x44, &shape), -ENOTSUP);
	assert_int_equal(shape_of(&threaded, 5, 0x1100, &shape), -ENOTSUP);
}

static void test_no_strings(void **unused)
{
	struct pybpf_layout old = layout_of(3, 8, false), now = layout_of(3, 13, false);
	struct pybpf_layout threaded = layout_of(3, 14, true), two = layout_of(2, 7, false), broken;
	struct pysym_string_shape shape;
	(void)unused;

	assert_int_equal(shape_of(&now, 5, 0x00, &shape), -EBADMSG);        /* kind 0 */
	assert_int_equal(shape_of(&now, 5, 0x2c, &shape), -EBADMSG);        /* kind 3 */
	assert_int_equal(shape_of(&now, 5, 0x34, &shape), -EBADMSG);        /* kind 5 */
	assert_int_equal(shape_of(&now, 5, 0x68, &shape), -EBADMSG);        /* ASCII of two bytes each */
	assert_int_equal(shape_of(&old, 5, 0x64, &shape), -EBADMSG);        /* compact but not ready */
	assert_int_equal(shape_of(&old, 5, 0xa0, &shape), -EBADMSG);        /* compact without a kind */
	assert_int_equal(shape_of(&threaded, 5, 0x1904, &shape), -EBADMSG); /* interned 4 */
	assert_int_equal(shape_of(&threaded, 5, 0x0065, &shape), -EBADMSG); /* the GIL build's shape */

	assert_int_equal(shape_of(&now, -1, 0x64, &shape), -EBADMSG);
	assert_int_equal(shape_of(&now, INT64_MAX, 0x64, &shape), -EBADMSG);
	assert_int_equal(shape_of(&now, 1LL << 62, 0x30, &shape), -EBADMSG); /* times 4 wraps to 0 */
	assert_int_equal(shape_of(&two, INT64_MIN, 0, &shape), -EBADMSG);

	/* A layout from a hostile process. */
	broken = now;
	broken.str_length = PYBPF_NO_OFFSET;
	assert_int_equal(pysym_string_read_shape(&broken, (const uint8_t[PYSYM_STRING_HEADER]){0}, &shape), -EBADMSG);
	broken.str_length = PYSYM_STRING_HEADER - 7;
	assert_int_equal(pysym_string_read_shape(&broken, (const uint8_t[PYSYM_STRING_HEADER]){0}, &shape), -EBADMSG);
	broken = now;
	broken.str_state = PYSYM_STRING_HEADER - 3;
	assert_int_equal(pysym_string_read_shape(&broken, (const uint8_t[PYSYM_STRING_HEADER]){0}, &shape), -EBADMSG);
	broken = now;
	broken.string_kind = 0;
	assert_int_equal(shape_of(&broken, 5, 0x64, &shape), -EBADMSG);
}

static void test_sizes(void **unused)
{
	struct pybpf_layout now = layout_of(3, 13, false), two = layout_of(2, 7, false);
	struct pysym_string_shape shape;
	(void)unused;

	assert_int_equal(shape_of(&now, 0, 0x64, &shape), 0);
	assert_int_equal(shape.data_size, 0);
	assert_int_equal(shape_of(&now, PYSYM_STRING_MAX, 0x64, &shape), 0);
	assert_int_equal(shape.data_size, PYSYM_STRING_MAX);
	assert_false(shape.cut);
	assert_int_equal(shape_of(&now, PYSYM_STRING_MAX + 1, 0x64, &shape), 0);
	assert_int_equal(shape.data_size, PYSYM_STRING_MAX);
	assert_true(shape.cut);
	assert_int_equal(shape_of(&now, PYSYM_STRING_MAX / 4, 0x30, &shape), 0);
	assert_false(shape.cut);
	assert_int_equal(shape_of(&now, PYSYM_STRING_MAX / 4 + 1, 0x30, &shape), 0);
	assert_int_equal(shape.data_size, PYSYM_STRING_MAX);
	assert_true(shape.cut);

	assert_int_equal(shape_of(&two, 5, 0, &shape), 0);
	assert_int_equal(shape.unit, 1);
	assert_false(shape.latin1);
	assert_int_equal(shape.data_offset, 36);
	assert_int_equal(shape.data_size, 5);
}

/* Decodes a copy of exactly size bytes, so that a read behind it is seen. */
static void assert_decoded(const struct pysym_string_shape *shape, const void *data, size_t size, const char *expected)
{
	uint8_t *copy = malloc(size);
	char *text;

	if (size)
		memcpy(copy, data, size);
	text = pysym_string_decode(shape, copy, size);
	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
	free(copy);
}

static void assert_bytes(const char *data, size_t size, bool cut, const char *expected)
{
	struct pysym_string_shape shape = {.unit = 1, .data_size = (uint32_t)size, .cut = cut};

	assert_decoded(&shape, data, size, expected);
}

#define BYTES(literal, expected)     assert_bytes(literal, sizeof(literal) - 1, false, expected)
#define CUT_BYTES(literal, expected) assert_bytes(literal, sizeof(literal) - 1, true, expected)

static void test_decode_bytes(void **unused)
{
	(void)unused;

	BYTES("", "");
	BYTES("<module>", "<module>");
	BYTES("a\0b", "a\\x00b");
	BYTES("tab\tdel\x7f", "tab\tdel\x7f");
	BYTES("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8d", "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8d");
	BYTES("caf\xe9", "caf\\xe9");
	BYTES("\x80 \xff", "\\x80 \\xff");
	BYTES("\xc0\x80 \xc1\xbf", "\\xc0\\x80 \\xc1\\xbf"); /* overlong */
	BYTES("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf");
	BYTES("\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf");
	BYTES("\xed\xa0\x80", "\\xed\\xa0\\x80");                      /* U+D800 */
	BYTES("\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"); /* its neighbours */
	BYTES("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");             /* U+110000 */
	BYTES("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
	BYTES("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	BYTES("\xe2\x82", "\\xe2\\x82");
	BYTES("\xe2\x82z", "\\xe2\\x82z");

	/* A cut is ours, not the string's; but only the last character can be cut. */
	CUT_BYTES("ab\xe2\x82", "ab");
	CUT_BYTES("ab\xf0\x9f\x90", "ab");
	CUT_BYTES("ab\xc3", "ab");
	CUT_BYTES("ab\xff", "ab\\xff");
	CUT_BYTES("\xe2\x82z", "\\xe2\\x82z");
}

static void test_decode_latin1(void **unused)
{
	struct pysym_string_shape shape = {.unit = 1, .latin1 = true, .data_size = 6};
	(void)unused;

	assert_decoded(&shape, "a\x7f\x80\xe9\xff\0", 6, "a\x7f\xc2\x80\xc3\xa9\xc3\xbf\\x00");
}

static void test_decode_ucs2(void **unused)
{
	static const uint16_t data[] = {'a',    0,      0x7f,   0x80,   0x7ff,  0x800,
					0xd7ff, 0xd800, 0xdc80, 0xdfff, 0xe000, 0xffff};
	struct pysym_string_shape shape = {.unit = 2, .data_size = sizeof(data)};
	(void)unused;

	assert_decoded(&shape, data, sizeof(data),
		       "a\\x00\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\\ud800\\udc80\\udfff"
		       "\xee\x80\x80\xef\xbf\xbf");
	assert_decoded(&shape, data, 3, "a");
	assert_decoded(&shape, data, 1, "");
	assert_decoded(&shape, data, 0, "");
}

static void test_decode_ucs4(void **unused)
{
	static const uint32_t data[] = {'a',     0,       0xe9,     0x20ac,   0xd83d,    0xdc0d,
					0x10000, 0x1f40d, 0x10ffff, 0x110000, 0xffffffff};
	struct pysym_string_shape shape = {.unit = 4, .data_size = sizeof(data)};
	(void)unused;

	assert_decoded(&shape, data, sizeof(data),
		       "a\\x00\xc3\xa9\xe2\x82\xac\\ud83d\\udc0d\xf0\x90\x80\x80\xf0\x9f\x90\x8d\xf4\x8f\xbf\xbf"
		       "\\U00110000\\Uffffffff");
	assert_decoded(&shape, data, 7, "a");
}

/* Fewer bytes than the string has: a copy that stopped early. More: none is read behind data_size. */
static void test_decode_size_against_shape(void **unused)
{
	struct pysym_string_shape shape = {.unit = 1, .data_size = 4};
	(void)unused;

	assert_decoded(&shape, "abcdef", 6, "abcd");
	assert_decoded(&shape, "abc", 3, "abc");
	assert_decoded(&shape, "ab\xc3", 3, "ab");
}

static void test_decode_longest(void **unused)
{
	static const int units[] = {1, 2, 4};
	static const uint32_t escapes[] = {4, 6, 10};
	uint8_t *data = malloc(PYSYM_STRING_MAX);
	unsigned int i, unit;
	(void)unused;

	/* All escapes, the worst case of every width. */
	for (i = 0; i < 3; i++) {
		struct pysym_string_shape shape = {.unit = (uint8_t)units[i], .data_size = PYSYM_STRING_MAX};
		char *text;

		memset(data, units[i] == 2 ? 0xdc : 0xff, PYSYM_STRING_MAX);
		text = pysym_string_decode(&shape, data, PYSYM_STRING_MAX);
		assert_int_equal(strlen(text), PYSYM_STRING_MAX / units[i] * escapes[i]);
		free(text);
	}
	/* A shape that says more than may be. */
	for (unit = 0; unit < 256; unit++) {
		struct pysym_string_shape shape = {.unit = (uint8_t)unit, .data_size = UINT32_MAX, .latin1 = unit % 3};

		free(pysym_string_decode(&shape, data, PYSYM_STRING_MAX));
	}
	free(data);
}

/* xorshift64: the same bytes in every run. */
static uint64_t random_state = 0x2545f4914f6cdd1d;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static bool is_utf8(const char *text)
{
	struct pysym_string_shape shape = {.unit = 1, .data_size = (uint32_t)strlen(text)};
	char *again = pysym_string_decode(&shape, (const uint8_t *)text, shape.data_size);
	bool same = strcmp(again, text) == 0; /* our decoder leaves UTF-8 alone and escapes all else */

	free(again);
	return same;
}

static void test_fuzz(void **unused)
{
	unsigned int round, i;
	(void)unused;

	for (round = 0; round < 100000; round++) {
		static const int minors[] = {6, 8, 11, 12, 13, 14, 15};
		bool two = random_next() % 8 == 0;
		struct pybpf_layout layout =
			layout_of(two ? 2 : 3, two ? 7 : minors[random_next() % 7], random_next() % 4 == 0);
		uint8_t header[PYSYM_STRING_HEADER];
		struct pysym_string_shape shape;
		size_t size;
		uint8_t *data;
		char *text;
		int err;

		for (i = 0; i < sizeof(header); i++)
			header[i] = (uint8_t)random_next();
		if (random_next() % 4) {
			uint64_t length = random_next() % 40;

			memcpy(header + layout.str_length, &length, sizeof(length));
		} else if (random_next() % 8 == 0) {
			layout.str_length = (uint16_t)random_next();
			layout.str_state = (uint16_t)random_next();
		}

		err = pysym_string_read_shape(&layout, header, &shape);
		assert_true(err == 0 || err == -EBADMSG || err == -ENOTSUP);
		if (err)
			continue;
		assert_true(shape.unit == 1 || shape.unit == 2 || shape.unit == 4);
		assert_true(shape.data_size <= PYSYM_STRING_MAX && shape.data_size % shape.unit == 0);

		size = random_next() % 48;
		data = malloc(size);
		for (i = 0; i < size; i++)
			data[i] =
				random_next() % 3 ? (uint8_t)random_next() : (uint8_t) "\0\xd8\xed\xf0\x80\x10"[i % 6];
		text = pysym_string_decode(&shape, data, size);
		assert_non_null(text);
		assert_true(strlen(text) <= size * 4);
		assert_true(is_utf8(text));
		free(text);
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_of_live_interpreters),
		cmocka_unit_test(test_states_of_free_threaded),
		cmocka_unit_test(test_legacy_strings),
		cmocka_unit_test(test_no_strings),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_decode_bytes),
		cmocka_unit_test(test_decode_latin1),
		cmocka_unit_test(test_decode_ucs2),
		cmocka_unit_test(test_decode_ucs4),
		cmocka_unit_test(test_decode_size_against_shape),
		cmocka_unit_test(test_decode_longest),
		cmocka_unit_test(test_fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
