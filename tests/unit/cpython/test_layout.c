// SPDX-License-Identifier: Apache-2.0
/* Tests of layout.c: the tables against facts found otherwise. */
#include <errno.h>
#include <stdbool.h>

#include "known_pythons.h"
#include "usable_layout.h"

/* What running interpreters were seen to have, and CPython's sources say; not made by tools/gen/layouts. */
static const struct known_row {
	int minor; /* of Python 3; 7 with major 2 is 2.7 */
	int major;
	bool debug;
	uint16_t tstate_frame, cframe_frame, frame_code, frame_previous, frame_position, frame_owner;
	uint16_t code_type, str_ascii_data;
	uint32_t tstate_current;
} known_rows[] = {
	{7, 2, false, 16, NO, 32, 24, 120, NO, 8, 36, LAYOUT_NONE},
	{6, 3, false, 24, NO, 32, 24, 120, NO, 8, 48, LAYOUT_NONE},
	{7, 3, false, 24, NO, 32, 24, 104, NO, 8, 48, 1480},
	/* Py_TRACE_REFS puts two pointers before every object, up to 3.7's debug builds. */
	{7, 3, true, 24, NO, 48, 40, 120, NO, 24, 64, 1480},
	{8, 3, false, 24, NO, 32, 24, 104, NO, 8, 48, 1368},
	{8, 3, true, 24, NO, 32, 24, 104, NO, 8, 48, 1368},
	{9, 3, false, 24, NO, 32, 24, 104, NO, 8, 48, 568},
	{10, 3, false, 24, NO, 32, 24, 96, NO, 8, 48, 568},
	{11, 3, false, 56, 8, 32, 48, 56, NO, 8, 48, 576},
	{11, 3, true, 56, 8, 32, 48, 56, NO, 8, 48, 576},
	{12, 3, false, 56, 0, 0, 8, 56, 70, 8, 40, LAYOUT_NONE},
};

static void test_known_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known_rows); i++) {
		const struct known_row *row = &known_rows[i];
		struct layout_build build;

		assert_int_equal(layout_from_table(row->major, row->minor, row->debug, &build), 0);
		assert_int_equal(build.layout.major, row->major);
		assert_int_equal(build.layout.minor, row->minor);
		assert_int_equal(build.layout.debug_build, row->debug);
		assert_int_equal(build.layout.tstate_frame, row->tstate_frame);
		assert_int_equal(build.layout.cframe_frame, row->cframe_frame);
		assert_int_equal(build.layout.frame_code, row->frame_code);
		assert_int_equal(build.layout.frame_previous, row->frame_previous);
		assert_int_equal(build.layout.frame_position, row->frame_position);
		assert_int_equal(build.layout.frame_owner, row->frame_owner);
		assert_int_equal(build.layout.code_type, row->code_type);
		assert_int_equal(build.layout.str_ascii_data, row->str_ascii_data);
		assert_int_equal(build.layout.interp_code_guard, 0);
#ifdef __x86_64__
		assert_int_equal(build.runtime_tstate_current, row->tstate_current);
#else
		assert_int_equal(build.runtime_tstate_current, LAYOUT_NONE);
#endif
	}
}

static void test_table_is_complete(void **state)
{
	(void)state;
	for (size_t i = 0; i < KNOWN_TABLES; i++) {
		for (int debug = 0; debug < 2; debug++) {
			struct layout_build build;
			int err = layout_from_table(known_tables[i][0], known_tables[i][1], debug, &build);

			/* f_lasti of these is at 136: only the limit of pybpf.h may keep them out. */
			if (debug && PYBPF_FRAME_WINDOW < 144 && (known_tables[i][0] == 2 || known_tables[i][1] == 6)) {
				assert_int_equal(err, -ENOENT);
				continue;
			}
			assert_int_equal(err, 0);
			assert_usable(&build);
			assert_int_equal(build.version_hex >> 24, known_tables[i][0]);
			assert_int_equal(build.version_hex >> 16 & 0xff, known_tables[i][1]);
			assert_non_null(strstr(build.origin, debug ? "debug" : "release"));
		}
	}
}

static void test_table_lacks_the_rest(void **state)
{
	struct layout_build build;

	(void)state;
	assert_int_equal(layout_from_table(2, 6, false, &build), -ENOENT);
	assert_int_equal(layout_from_table(3, 5, false, &build), -ENOENT);
	assert_int_equal(layout_from_table(3, 13, false, &build), -ENOENT);
	assert_int_equal(layout_from_table(4, 12, false, &build), -ENOENT);
	assert_int_equal(layout_from_table(0x10003, 12, false, &build), -ENOENT);
}

static void test_kinds(void **state)
{
	struct layout_build build;

	(void)state;
	assert_int_equal(layout_from_table(2, 7, false, &build), 0);
	assert_int_equal(build.layout.string_kind, PYBPF_STR_BYTES);
	assert_int_equal(build.layout.line_kind, PYBPF_LINES_LNOTAB_UNSIGNED);
	assert_int_equal(build.runtime_interp_head, 0);
	assert_int_equal(layout_from_table(3, 9, false, &build), 0);
	assert_int_equal(build.layout.line_kind, PYBPF_LINES_LNOTAB);
	assert_int_equal(build.layout.position_kind, PYBPF_POS_LASTI);
	assert_int_equal(build.layout.owner_not_python, 0xff);
	assert_int_equal(layout_from_table(3, 10, false, &build), 0);
	assert_int_equal(build.layout.line_kind, PYBPF_LINES_PEP626);
	assert_int_equal(build.layout.code_qualname, NO);
	assert_int_equal(layout_from_table(3, 12, false, &build), 0);
	assert_int_equal(build.layout.line_kind, PYBPF_LINES_PEP657);
	assert_int_equal(build.layout.position_kind, PYBPF_POS_INSTR_PTR);
	assert_int_equal(build.layout.owner_not_python, 3);
	assert_int_equal(build.layout.code_tag_mask, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_rows),
		cmocka_unit_test(test_table_is_complete),
		cmocka_unit_test(test_table_lacks_the_rest),
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
