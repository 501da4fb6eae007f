// SPDX-License-Identifier: Apache-2.0
/* Tests of facts.c: each version has its row, and a row agrees with what the version's layout says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cpython/facts.h"
#include "cpython/layout.h"
#include "known_pythons.h"

#define OLDEST 6
#define NEWEST 15

static void test_each_version_has_a_row(void **state)
{
	(void)state;
	assert_int_equal(cpython_facts_of(2, 7)->major, 2);
	for (int minor = OLDEST; minor <= NEWEST; minor++) {
		const struct cpython_facts *facts = cpython_facts_of(3, minor);
		struct pybpf_layout layout = {.major = 3, .minor = (uint16_t)minor};

		assert_int_equal(facts->major, 3);
		assert_int_equal(facts->minor, minor);
		assert_ptr_equal(cpython_facts(&layout), facts);
		assert_false(cpython_is_newer(&layout));
	}
}

static void test_a_newer_version_is_as_the_newest(void **state)
{
	static const struct pybpf_layout newer[] = {
		{.major = 3, .minor = NEWEST + 1}, {.major = 3, .minor = 99}, {.major = 4, .minor = 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++) {
		assert_int_equal(cpython_facts(&newer[i])->minor, NEWEST);
		assert_true(cpython_is_newer(&newer[i]));
	}
}

static void test_one_without_a_row_is_as_the_one_before(void **state)
{
	(void)state;
	assert_int_equal(cpython_facts_of(3, 3)->major, 2);
	assert_int_equal(cpython_facts_of(2, 6)->major, 2);
	assert_int_equal(cpython_facts_of(0, 0)->major, 2);
}

/* Layouts come from CPython's headers. */
static void test_rows_agree_with_layouts(void **state)
{
	(void)state;
	for (int minor = OLDEST; minor <= NEWEST; minor++) {
		const struct cpython_facts *facts = cpython_facts_of(3, minor);
		struct layout_build build;

		assert_int_equal(layout_from_table(3, minor, false, &build) != 0, facts->build->has_debug_offsets);
		if (facts->build->has_debug_offsets)
			continue;
		assert_int_equal(facts->frame->kind == CPYTHON_LOCALS_OF_OBJECT,
				 build.layout.position_kind == PYBPF_POS_LASTI);
		assert_int_equal(facts->frame->kind == CPYTHON_LOCALS_BEHIND_OWNER,
				 build.layout.frame_owner != PYBPF_NO_OFFSET);
		assert_int_equal(facts->code->varnames == 0, build.layout.code_bytecode == 0);
		/* With state.ready PyASCIIObject has wstr, too. */
		assert_int_equal(build.layout.str_ascii_data, facts->objects->has_ready ? 48 : 40);
	}
}

/* What the version alone tells is in a layout, too, beside offsets that come from CPython's headers. */
static void test_layouts_have_facts(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * KNOWN_TABLES; i++) {
		const int *version = known_tables[i / 2];
		bool has_tasks = version[0] == 3 && version[1] >= 7;
		struct layout_build build;
		const struct pybpf_layout *l = &build.layout;

		assert_int_equal(layout_from_table(version[0], version[1], i % 2, &build), 0);
		assert_int_equal(l->has_frame_objects, l->position_kind == PYBPF_POS_LASTI);
		assert_int_equal(l->extended_arg != 0, l->code_bytecode != 0);
		assert_int_equal(l->caches != 0, l->code_adaptive != PYBPF_NO_OFFSET);
		assert_in_range(l->caches, 0, PYBPF_CACHES_VERSIONS);
		assert_int_equal(l->tstate_contexts != 0, has_tasks);
		assert_int_equal(l->tstate_dict != 0, has_tasks);
		/* It is a field before the thread's number. */
		assert_true(l->tstate_dict < l->tstate_thread_id && l->tstate_dict % sizeof(void *) == 0);
		if (l->tstate_datastack_top)
			assert_in_range(l->tstate_contexts + sizeof(uint64_t), 1, l->tstate_datastack_top);
	}
}

static bool is_named(const char *name, const void *wanted)
{
	return !strcmp(name, wanted) || !strcmp(name, "_PyRuntime");
}

static void test_api(void **state)
{
	(void)state;
	assert_int_equal(cpython_by_api(is_named, "Py_Version")->minor, 11);
	assert_int_equal(cpython_by_api(is_named, "PyList_GetItemRef")->minor, 13);
	assert_int_equal(cpython_by_api(is_named, "")->minor, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_version_has_a_row),
		cmocka_unit_test(test_a_newer_version_is_as_the_newest),
		cmocka_unit_test(test_one_without_a_row_is_as_the_one_before),
		cmocka_unit_test(test_rows_agree_with_layouts),
		cmocka_unit_test(test_layouts_have_facts),
		cmocka_unit_test(test_api),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
