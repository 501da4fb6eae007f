// SPDX-License-Identifier: Apache-2.0
/* Tables with rows of instructions at which searches have ended. */
#include "native/ahead_merge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define RULE(n)      (PYBPF_NATIVE_SP | (uint32_t)(n) << PYBPF_RULE_OFFSET_SHIFT)

static void check_merged(const struct pybpf_native_row *old, size_t nr_old, struct native_ahead_row *rows,
			 size_t nr_rows, const struct pybpf_native_row *wanted, size_t nr_wanted)
{
	struct pybpf_native_row *out = NULL;
	size_t count = 0;

	assert_int_equal(native_merge_ahead(old, nr_old, rows, nr_rows, &out, &count), 0);
	assert_int_equal(count, nr_wanted);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(out[i].pc, wanted[i].pc);
		assert_int_equal(out[i].rule, wanted[i].rule);
	}
	free(out);
}

static void test_an_empty_table(void **state)
{
	struct native_ahead_row rows[] = {{30, 40, RULE(3)}, {10, 20, RULE(1)}, {20, 25, RULE(2)}};
	static const struct pybpf_native_row wanted[] = {{10, RULE(1)}, {20, RULE(2)}, {25, 0}, {30, RULE(3)}, {40, 0}};

	(void)state;
	check_merged(NULL, 0, rows, COUNT(rows), wanted, COUNT(wanted));
}

static void test_rules_that_are_there_stay(void **state)
{
	static const struct pybpf_native_row old[] = {{0, RULE(9)}, {10, 0}, {50, RULE(8)}, {60, 0}};
	struct native_ahead_row rows[] = {{5, 20, RULE(1)}, {20, 55, RULE(2)}, {52, 58, RULE(3)}, {70, 80, RULE(4)}};
	static const struct pybpf_native_row wanted[] = {{0, RULE(9)}, {10, 0},       {20, RULE(2)}, {50, RULE(8)},
							 {60, 0},      {70, RULE(4)}, {80, 0}};

	(void)state;
	check_merged(old, COUNT(old), rows, COUNT(rows), wanted, COUNT(wanted));
}

static void test_rows_that_overlap(void **state)
{
	struct native_ahead_row rows[] = {{10, 30, RULE(1)}, {20, 40, RULE(2)}, {12, 14, RULE(3)}, {10, 12, RULE(4)}};
	static const struct pybpf_native_row wanted[] = {{10, RULE(4)}, {12, RULE(1)}, {30, RULE(2)}, {40, 0}};

	(void)state;
	check_merged(NULL, 0, rows, COUNT(rows), wanted, COUNT(wanted));
}

/* Any rows: the table is in order, keeps each old rule, and has a new one where the old table has none. */
static void test_any_rows(void **state)
{
	(void)state;
	srandom(1);
	for (int turn = 0; turn < 500; turn++) {
		struct pybpf_native_row old[20], *out;
		struct native_ahead_row rows[20];
		size_t nr_old = 0, count, at = 0;

		for (uint32_t pc = (uint32_t)random() % 10; pc < 100 && nr_old < 20; pc += 1 + (uint32_t)random() % 20)
			old[nr_old++] = (struct pybpf_native_row){pc, random() % 2 ? RULE(100) : 0};
		for (size_t i = 0; i < COUNT(rows); i++) {
			uint32_t start = (uint32_t)random() % 100;

			rows[i] = (struct native_ahead_row){start, start + 1 + (uint32_t)random() % 9, RULE(1)};
		}
		assert_int_equal(native_merge_ahead(old, nr_old, rows, COUNT(rows), &out, &count), 0);
		for (size_t i = 1; i < count; i++)
			assert_true(out[i - 1].pc < out[i].pc);
		for (uint32_t pc = 0; pc < 120; pc++) {
			uint32_t before = 0, wanted, now = 0;

			for (at = 0; at < nr_old && old[at].pc <= pc; at++)
				before = old[at].rule;
			wanted = before;
			for (size_t i = 0; i < COUNT(rows) && !before; i++)
				wanted = pc >= rows[i].start && pc < rows[i].end ? RULE(1) : wanted;
			for (at = 0; at < count && out[at].pc <= pc; at++)
				now = out[at].rule;
			assert_true(now == before || now == wanted);
			assert_true(!before || now == before);
		}
		free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_table),
		cmocka_unit_test(test_rules_that_are_there_stay),
		cmocka_unit_test(test_rows_that_overlap),
		cmocka_unit_test(test_any_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
