// SPDX-License-Identifier: Apache-2.0
/* Names of epochs: they come back, sort by time, and tell what is part of what. */
#include <stdlib.h>
#include <string.h>

#include "profiles.h"
#include "archive/list.h"

static void assert_comes_back(const struct archive_span *span)
{
	char name[ARCHIVE_NAME_MAX];
	struct archive_span again;

	archive_name_write(span, name);
	assert_true(archive_name_read(name, &again));
	assert_memory_equal(span, &again, sizeof(*span));
}

static void test_round_trip(void **unused)
{
	const struct archive_span spans[] = {
		{.begin_ms = 1795755720123, .length_ms = 61250, .first = 42, .last = 42},
		{.begin_ms = 0, .length_ms = 0, .first = 1, .last = 1},
		{.begin_ms = 951782400000, .length_ms = 3600120, .first = 40, .last = 99},
		{.begin_ms = 4102444799999, .length_ms = 1, .first = 123456789, .last = 1234567890123},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++)
		assert_comes_back(&spans[i]);
}

static void test_a_known_name(void **unused)
{
	const struct archive_span span = {.begin_ms = 951782400005, .length_ms = 60000, .first = 7, .last = 8};
	char name[ARCHIVE_NAME_MAX];

	(void)unused;
	archive_name_write(&span, name);
	assert_string_equal(name, "20000229T000000.005Z-60000ms-00000007-00000008.pybpf");
}

static void test_other_names(void **unused)
{
	static const char *const names[] = {
		"",
		"shop.pybpf",
		"20000229T000000.005Z-60000ms-00000007",
		"20000229T000000.005Z-60000ms-00000007.pybpf.gz",
		"20000229T000000.005Z-60000ms-7.pybpf",
		"20000230T000000.005Z-60000ms-00000007.pybpf",
		"20000229T250000.005Z-60000ms-00000007.pybpf",
		"20000229T000000.005Z--60000ms-00000007.pybpf",
		"20000229T000000.005Z-60000ms-00000007-00000007.pybpf",
		"20000229T000000.005Z-60000ms-00000008-00000007.pybpf",
		"20000229T000000.005Z-60000ms-00000007-0000000a.pybpf",
		"-0000229T000000.005Z-60000ms-00000007.pybpf",
		".pybpf-0123456789abcdef",
	};
	struct archive_span span;

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_false(archive_name_read(names[i], &span));
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void test_names_sort_by_time(void **unused)
{
	char names[100][ARCHIVE_NAME_MAX], sorted[100][ARCHIVE_NAME_MAX];

	(void)unused;
	for (size_t i = 0; i < 100; i++) {
		const struct archive_span span = {.begin_ms = 946684000000 + i * 61234567,
						  .length_ms = 1 + (100 - i),
						  .first = i + 1,
						  .last = i + 1};

		archive_name_write(&span, names[i]);
	}
	memcpy(sorted, names, sizeof(names));
	qsort(sorted, 100, sizeof(*sorted), compare);
	assert_memory_equal(sorted, names, sizeof(names));
}

static void test_parts(void **unused)
{
	/* Two epochs, what was merged of them, what was merged of that and of a third one, and one more. */
	static const struct archive_epoch epochs[] = {
		{.span = {.begin_ms = 3, .first = 3, .last = 3}}, {.span = {.begin_ms = 1, .first = 1, .last = 1}},
		{.span = {.begin_ms = 1, .first = 1, .last = 3}}, {.span = {.begin_ms = 2, .first = 2, .last = 2}},
		{.span = {.begin_ms = 4, .first = 4, .last = 4}}, {.span = {.begin_ms = 1, .first = 1, .last = 2}},
	};
	static const bool parts[] = {false, true, true, true, true, false};
	struct archive_list list = {0};

	(void)unused;
	assert_int_equal(archive_list_next_number(&list), 1);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(archive_list_add(&list, &epochs[i]), 0);
	archive_list_sort(&list);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(list.epochs[i].is_part, parts[i]);
	assert_int_equal(list.epochs[0].span.last, 3);
	assert_int_equal(list.epochs[5].span.first, 4);
	assert_int_equal(archive_list_next_number(&list), 5);
	archive_list_free(&list);
}

static void test_numbers_of_another_agent(void **unused)
{
	/* The first hour comes from a backup: numbers began anew since. */
	static const struct archive_epoch epochs[] = {
		{.span = {.begin_ms = 1, .first = 1, .last = 3}},
		{.span = {.begin_ms = 2, .first = 2, .last = 2}},
		{.span = {.begin_ms = 7200000, .first = 1, .last = 1}},
		{.span = {.begin_ms = 7200001, .first = 2, .last = 2}},
		{.span = {.begin_ms = 7200002, .first = 2, .last = 2}},
	};
	struct archive_list list = {0};
	size_t parts = 0;

	(void)unused;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(archive_list_add(&list, &epochs[i]), 0);
	archive_list_sort(&list);
	for (size_t i = 0; i < 5; i++) {
		parts += list.epochs[i].is_part;
		assert_int_equal(list.epochs[i].is_part, list.epochs[i].span.begin_ms == 2);
	}
	assert_int_equal(parts, 1);
	archive_list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_a_known_name),
		cmocka_unit_test(test_other_names), cmocka_unit_test(test_names_sort_by_time),
		cmocka_unit_test(test_parts),       cmocka_unit_test(test_numbers_of_another_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
