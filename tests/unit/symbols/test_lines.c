// SPDX-License-Identifier: Apache-2.0
/* Hand-made line tables, boundaries, and bytes that are no table at all. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "symbols/lines.h"

/* One line per byte offset in [from, to]. */
static void assert_lines(enum pybpf_line_kind kind, const uint8_t *table, size_t size, int first_line, int64_t from,
			 int64_t to, int expected)
{
	int64_t position;

	for (position = from; position <= to; position++) {
		int line = pysym_line(kind, table, size, first_line, position);

		if (line != expected)
			fail_msg("position %lld: line %d, expected %d", (long long)position, line, expected);
	}
}

#define LINES(kind, table, first, from, to, expected)                                                                  \
	assert_lines(kind, table, sizeof(table), first, from, to, expected)

static void test_negative_position_is_first_line(void **unused)
{
	static const uint8_t lnotab[] = {0, 5, 6, 1};
	static const uint8_t pep626[] = {4, 0x80, 4, 2};
	static const uint8_t pep657[] = {0xf8, 0xd9, 0, 0};
	(void)unused;

	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, lnotab, 10, -2, -1, 10);
	LINES(PYBPF_LINES_LNOTAB, lnotab, 10, -2, -1, 10);
	LINES(PYBPF_LINES_PEP626, pep626, 10, -2, -1, 10);
	LINES(PYBPF_LINES_PEP657, pep657, 10, -2, -1, 10);
	assert_int_equal(pysym_line(PYBPF_LINES_PEP657, pep657, sizeof(pep657), 10, INT64_MIN), 10);
}

static void test_empty_table(void **unused)
{
	(void)unused;

	/* Cython's made-up code objects. */
	assert_int_equal(pysym_line(PYBPF_LINES_LNOTAB_UNSIGNED, NULL, 0, 7, 0), 7);
	assert_int_equal(pysym_line(PYBPF_LINES_LNOTAB, NULL, 0, 7, INT64_MAX), 7);
	assert_int_equal(pysym_line(PYBPF_LINES_PEP626, NULL, 0, 7, 0), PYSYM_NO_LINE);
	assert_int_equal(pysym_line(PYBPF_LINES_PEP657, NULL, 0, 7, 0), PYSYM_NO_LINE);
}

static void test_unknown_kind(void **unused)
{
	static const uint8_t table[] = {2, 1};
	(void)unused;

	assert_int_equal(pysym_line((enum pybpf_line_kind)0, table, sizeof(table), 1, 0), -EBADMSG);
	assert_int_equal(pysym_line((enum pybpf_line_kind)99, table, sizeof(table), 1, 0), -EBADMSG);
}

/* The worked example of Objects/lnotab_notes.txt: offsets 0, 6, 50, 350, 361 on lines 1, 2, 7, 207, 208. */
static void test_lnotab_notes_example(void **unused)
{
	static const uint8_t is_unsigned[] = {0, 1, 6, 1, 44, 5, 255, 0, 45, 200, 11, 1};
	static const uint8_t is_signed[] = {0, 1, 6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1};
	(void)unused;

	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, is_unsigned, 0, 0, 5, 1);
	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, is_unsigned, 0, 6, 49, 2);
	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, is_unsigned, 0, 50, 349, 7);
	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, is_unsigned, 0, 350, 360, 207);
	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, is_unsigned, 0, 361, 1000, 208);

	LINES(PYBPF_LINES_LNOTAB, is_signed, 0, 0, 5, 1);
	LINES(PYBPF_LINES_LNOTAB, is_signed, 0, 6, 49, 2);
	LINES(PYBPF_LINES_LNOTAB, is_signed, 0, 50, 349, 7);
	LINES(PYBPF_LINES_LNOTAB, is_signed, 0, 350, 360, 207);
	LINES(PYBPF_LINES_LNOTAB, is_signed, 0, 361, 1000, 208);
}

static void test_lnotab_signs(void **unused)
{
	/* Back by 2 at offset 4, by 128 at 8. */
	static const uint8_t table[] = {4, 0xfe, 4, 0x80};
	(void)unused;

	LINES(PYBPF_LINES_LNOTAB, table, 200, 0, 3, 200);
	LINES(PYBPF_LINES_LNOTAB, table, 200, 4, 7, 198);
	LINES(PYBPF_LINES_LNOTAB, table, 200, 8, 20, 70);
	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, table, 200, 4, 7, 454);
	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, table, 200, 8, 20, 582);
}

static void test_lnotab_malformed(void **unused)
{
	static const uint8_t odd[] = {4, 1, 4};
	static const uint8_t below_zero[] = {4, 0xf0, 4, 0x20};
	(void)unused;

	/* What lies before the torn pair is still right. */
	LINES(PYBPF_LINES_LNOTAB, odd, 1, 0, 3, 1);
	LINES(PYBPF_LINES_LNOTAB, odd, 1, 4, 9, -EBADMSG);
	LINES(PYBPF_LINES_LNOTAB_UNSIGNED, odd, 1, 4, 9, -EBADMSG);

	LINES(PYBPF_LINES_LNOTAB, below_zero, 1, 0, 3, 1);
	LINES(PYBPF_LINES_LNOTAB, below_zero, 1, 4, 7, -EBADMSG);
	LINES(PYBPF_LINES_LNOTAB, below_zero, 1, 8, 9, 17);
	assert_int_equal(pysym_line(PYBPF_LINES_LNOTAB, below_zero, sizeof(below_zero), -1, 0), -EBADMSG);
	assert_int_equal(pysym_line(PYBPF_LINES_LNOTAB, below_zero, sizeof(below_zero), INT_MIN, -1), -EBADMSG);
}

static void test_pep626_ranges(void **unused)
{
	/* Ranges end before their end; a gap without a line; an empty range that only moves the line. */
	static const uint8_t table[] = {4, 0, 6, 2, 2, 0x80, 0, 127, 8, 100, 2, 0x81, 254, 0};
	(void)unused;

	LINES(PYBPF_LINES_PEP626, table, 10, 0, 3, 10);
	LINES(PYBPF_LINES_PEP626, table, 10, 4, 9, 12);
	LINES(PYBPF_LINES_PEP626, table, 10, 10, 11, PYSYM_NO_LINE);
	LINES(PYBPF_LINES_PEP626, table, 10, 12, 19, 239);
	LINES(PYBPF_LINES_PEP626, table, 10, 20, 21, 112);
	LINES(PYBPF_LINES_PEP626, table, 10, 22, 275, 112);
	LINES(PYBPF_LINES_PEP626, table, 10, 276, 300, PYSYM_NO_LINE);
	assert_int_equal(pysym_line(PYBPF_LINES_PEP626, table, sizeof(table), 10, INT64_MAX), PYSYM_NO_LINE);
}

static void test_pep626_malformed(void **unused)
{
	static const uint8_t odd[] = {4, 1, 4};
	static const uint8_t below_zero[] = {4, 0xf0, 4, 0x20};
	static const uint8_t over[] = {2, 127};
	(void)unused;

	LINES(PYBPF_LINES_PEP626, odd, 1, 0, 3, 2);
	LINES(PYBPF_LINES_PEP626, odd, 1, 4, 9, -EBADMSG);
	LINES(PYBPF_LINES_PEP626, below_zero, 1, 0, 3, -EBADMSG);
	LINES(PYBPF_LINES_PEP626, below_zero, 1, 4, 7, 17);
	LINES(PYBPF_LINES_PEP626, over, INT_MAX, 0, 1, -EBADMSG);
}

/* The first byte of a PEP 657 entry. */
#define ENTRY(kind, units) (0x80 | (kind) << 3 | ((units)-1))

static void test_pep657_kinds(void **unused)
{
	static const uint8_t table[] = {
		ENTRY(0, 1),  0x12,                                          /* 0-1: short form, line 10 */
		ENTRY(9, 2),  0x7f,                                          /* 2-5: short form, line 10 */
		ENTRY(10, 1), 5,           9,                                /* 6-7: line 10 */
		ENTRY(11, 1), 5,           9,                                /* 8-9: line 11 */
		ENTRY(12, 8), 5,           9,                                /* 10-25: line 13 */
		ENTRY(15, 1),                                                /* 26-27: none */
		ENTRY(13, 1), 6,                                             /* 28-29: line 13 + 3 */
		ENTRY(14, 1), 5,           1,           2, 3,                /* 30-31: line 16 - 2 */
		ENTRY(13, 1), 0x40 | 0x00, 0x40 | 0x02, 1,                   /* 32-33: line 14 + (1 << 11 | 1 << 6) */
		ENTRY(14, 1), 0x40 | 0x01, 0x40 | 0x02, 1, 0x41, 0x01, 0, 0, /* 34-35: back to 14 */
	};
	(void)unused;

	LINES(PYBPF_LINES_PEP657, table, 10, 0, 7, 10);
	LINES(PYBPF_LINES_PEP657, table, 10, 8, 9, 11);
	LINES(PYBPF_LINES_PEP657, table, 10, 10, 25, 13);
	LINES(PYBPF_LINES_PEP657, table, 10, 26, 27, PYSYM_NO_LINE);
	LINES(PYBPF_LINES_PEP657, table, 10, 28, 29, 16);
	LINES(PYBPF_LINES_PEP657, table, 10, 30, 31, 14);
	LINES(PYBPF_LINES_PEP657, table, 10, 32, 33, 14 + (1 << 11) + (1 << 6));
	LINES(PYBPF_LINES_PEP657, table, 10, 34, 35, 14);
	LINES(PYBPF_LINES_PEP657, table, 10, 36, 60, PYSYM_NO_LINE);
	assert_int_equal(pysym_line(PYBPF_LINES_PEP657, table, sizeof(table), 10, INT64_MAX), PYSYM_NO_LINE);
}

static void test_pep657_module_begins_on_line_zero(void **unused)
{
	/* As 3.11 writes it for a module: RESUME on line 0, then line 1. */
	static const uint8_t table[] = {ENTRY(14, 1), 3, 1, 1, 1, ENTRY(13, 1), 2};
	(void)unused;

	LINES(PYBPF_LINES_PEP657, table, 1, 0, 1, 0);
	LINES(PYBPF_LINES_PEP657, table, 1, 2, 3, 1);
}

static void test_pep657_no_location_keeps_the_line(void **unused)
{
	static const uint8_t table[] = {ENTRY(13, 1), 8, ENTRY(15, 8), ENTRY(15, 8), ENTRY(11, 1), 0, 0};
	(void)unused;

	LINES(PYBPF_LINES_PEP657, table, 1, 0, 1, 5);
	LINES(PYBPF_LINES_PEP657, table, 1, 2, 33, PYSYM_NO_LINE);
	LINES(PYBPF_LINES_PEP657, table, 1, 34, 35, 6);
}

static void test_pep657_malformed(void **unused)
{
	static const uint8_t no_start[] = {0x12, ENTRY(0, 1), 0};
	static const uint8_t torn_varint[] = {ENTRY(0, 1), 0, ENTRY(13, 1), 0x41};
	static const uint8_t no_varint[] = {ENTRY(14, 1)};
	static const uint8_t next_entry_in_varint[] = {ENTRY(13, 1), 0x41, ENTRY(0, 1), 0};
	static const uint8_t endless_varint[] = {ENTRY(13, 1), 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0};
	static const uint8_t wide_varint[] = {ENTRY(13, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f};
	static const uint8_t widest_varint[] = {ENTRY(13, 1), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03};
	static const uint8_t twice[] = {ENTRY(13, 1), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03,
					ENTRY(13, 1), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03};
	static const uint8_t below_zero[] = {ENTRY(13, 1), 5};
	(void)unused;

	LINES(PYBPF_LINES_PEP657, no_start, 1, 0, 3, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, torn_varint, 1, 0, 1, 1);
	LINES(PYBPF_LINES_PEP657, torn_varint, 1, 2, 9, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, no_varint, 1, 0, 1, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, next_entry_in_varint, 1, 0, 9, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, endless_varint, 1, 0, 1, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, wide_varint, 1, 0, 1, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, widest_varint, 0, 0, 1, INT_MAX);
	LINES(PYBPF_LINES_PEP657, widest_varint, 1, 0, 1, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, twice, 0, 2, 3, -EBADMSG);
	LINES(PYBPF_LINES_PEP657, below_zero, 1, 0, 1, -EBADMSG);
}

/* xorshift64: the same tables in every run. */
static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Mutated tables in blocks of their exact size: sanitizers watch the rest. */
static void test_fuzz(void **unused)
{
	static const uint8_t seed[] = {ENTRY(0, 1),
				       0x12,
				       ENTRY(12, 8),
				       5,
				       9,
				       ENTRY(15, 1),
				       ENTRY(13, 1),
				       6,
				       ENTRY(14, 1),
				       5,
				       1,
				       2,
				       3,
				       ENTRY(13, 1),
				       0x41,
				       0x42,
				       1,
				       4,
				       0x80,
				       0,
				       127};
	static const int first_lines[] = {1, 0, -1, 1000, INT_MAX, INT_MIN};
	unsigned int round, i;
	(void)unused;

	for (round = 0; round < 150000; round++) {
		enum pybpf_line_kind kind = PYBPF_LINES_LNOTAB_UNSIGNED + round % 4;
		int first_line = first_lines[random_next() % 6];
		size_t size = random_next() % (2 * sizeof(seed));
		uint8_t *table = malloc(size);

		for (i = 0; i < size; i++)
			table[i] = random_next() % 4 ? seed[i % sizeof(seed)] : (uint8_t)random_next();
		for (i = 0; i < 4; i++) {
			int64_t position = (int64_t)(random_next() % 200) - 4;
			int line;

			if (random_next() % 16 == 0)
				position = (int64_t)random_next();
			line = pysym_line(kind, table, size, first_line, position);
			if (line < 0)
				assert_true(line == PYSYM_NO_LINE || line == -EBADMSG);
			if (line == PYSYM_NO_LINE)
				assert_true(kind >= PYBPF_LINES_PEP626 && position >= 0);
			if (line >= 0 && position < 0)
				assert_int_equal(line, first_line);
		}
		free(table);
	}
}

/* A large table costs one pass. */
static void test_large_table(void **unused)
{
	size_t size = 16 * 1024 * 1024, i;
	uint8_t *table = malloc(size);
	(void)unused;

	memset(table, 0, size);
	for (i = 1; i < size; i += 2)
		table[i] = 0x7f;
	assert_int_equal(pysym_line(PYBPF_LINES_LNOTAB, table, size, 1, 0), 1 + 127 * (int)(size / 2));
	assert_int_equal(pysym_line(PYBPF_LINES_PEP626, table, size, 1, 0), PYSYM_NO_LINE);
	assert_int_equal(pysym_line(PYBPF_LINES_LNOTAB, table, size, INT_MAX - 127, 0), -EBADMSG);

	/* One entry of a single unit, then bytes that belong to it to the end. */
	memset(table, 0x7f, size);
	table[0] = ENTRY(10, 1);
	assert_int_equal(pysym_line(PYBPF_LINES_PEP657, table, size, 1, 2), PYSYM_NO_LINE);
	free(table);
}

static void assert_span(const uint8_t *table, size_t size, int64_t position, struct pysym_span expected)
{
	struct pysym_span span;

	assert_true(pysym_span(table, size, 10, position, &span));
	assert_int_equal(span.line, expected.line);
	assert_int_equal(span.end_line, expected.end_line);
	assert_int_equal(span.column, expected.column);
	assert_int_equal(span.end_column, expected.end_column);
}

/* An entry of each kind, as Objects/locations.md has them: one unit, but for the second one, which has two. */
static void test_columns(void **unused)
{
	static const uint8_t table[] = {
		0x88, 0x23,                /* short form: 8 + 2, and 3 more */
		0xd9, 5,    9,             /* on the next line */
		0xf0, 2,    1, 3,    8,    /* on the next one, which goes on in another */
		0xe8, 0,                   /* no columns */
		0xf8,                      /* nothing */
		0xf0, 0,    0, 0x7f, 0x01, /* ends within a column */
	};
	struct pysym_span span;

	(void)unused;
	assert_span(table, sizeof(table), 0, (struct pysym_span){10, 10, 10, 13});
	assert_span(table, sizeof(table), 2, (struct pysym_span){11, 11, 5, 9});
	assert_span(table, sizeof(table), 5, (struct pysym_span){11, 11, 5, 9});
	assert_span(table, sizeof(table), 6, (struct pysym_span){12, 13, 2, 7});
	for (int64_t position = 8; position < 16; position += 2)
		assert_false(pysym_span(table, sizeof(table), 10, position, &span));
	assert_false(pysym_span(table, sizeof(table), 10, -1, &span));
	assert_false(pysym_span(table, 3, 10, 2, &span));
	assert_false(pysym_span(NULL, 0, 10, 0, &span));
	assert_true(pysym_has_columns(table, sizeof(table), 10));
	/* From the entry without columns to the one without a line. */
	assert_false(pysym_has_columns(table + 10, 3, 10));
	assert_false(pysym_has_columns(table + 1, sizeof(table) - 1, 10));
	assert_false(pysym_has_columns(NULL, 0, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_negative_position_is_first_line),
		cmocka_unit_test(test_empty_table),
		cmocka_unit_test(test_unknown_kind),
		cmocka_unit_test(test_lnotab_notes_example),
		cmocka_unit_test(test_lnotab_signs),
		cmocka_unit_test(test_lnotab_malformed),
		cmocka_unit_test(test_pep626_ranges),
		cmocka_unit_test(test_pep626_malformed),
		cmocka_unit_test(test_pep657_kinds),
		cmocka_unit_test(test_pep657_module_begins_on_line_zero),
		cmocka_unit_test(test_pep657_no_location_keeps_the_line),
		cmocka_unit_test(test_pep657_malformed),
		cmocka_unit_test(test_fuzz),
		cmocka_unit_test(test_large_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
