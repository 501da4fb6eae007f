// SPDX-License-Identifier: Apache-2.0
/* Code objects that the kernel announced in part, cut or lying. */
#include "pysym_records.h"

/* Parts that the kernel could not copy, of a process that is gone. */

static void test_no_name(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);
	struct pysym_frame out;

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
	add(s, r);
	out = resolved(s, 4);
	assert_string_equal(out.file, "b.py");
	assert_int_equal(out.line, 11);
	assert_true(out.name[0] == '['); /* says that it has none */
	assert_int_equal(pysym_get_counters(s)->unnamed, 1);
	pysym_free(s);
}

static void test_no_file(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);
	struct pysym_frame out;

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
	add(s, r);
	out = resolved(s, 4);
	assert_string_equal(out.name, "f");
	assert_string_equal(out.file, "");
	assert_int_equal(out.line, 11);
	pysym_free(s);
}

static void test_no_lines(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, lnotab, 2, 4); /* half of it would give false lines */
	add(s, r);
	assert_int_equal(resolved(s, 8).line, -1);
	assert_int_equal(pysym_get_counters(s)->no_lines, 1);
	pysym_free(s);
}

/* A function of one instruction, before 3.10, has a table of no bytes, which is a whole table. */
static void test_empty_line_table(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, NULL, 0, 0);
	add(s, r);
	assert_int_equal(resolved(s, 8).line, 10);
	assert_int_equal(pysym_get_counters(s)->no_lines, 0);
	pysym_free(s);
}

static void test_nothing_copied(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pysym_frame out;

	(void)unused;
	add(s, new_record(10));
	out = resolved(s, 4);
	assert_true(out.name[0] == '[');
	assert_string_equal(out.file, "");
	assert_int_equal(out.line, -1);
	assert_int_equal(pysym_get_counters(s)->unnamed, 1);
	pysym_free(s);
}

/* String objects that are cut, or whose header promises more than was copied. */
static void test_lying_strings(void **unused)
{
	struct pybpf_layout l = layout_of(8);
	uint8_t object[512];
	size_t size = ascii(&l, "the_name", object, sizeof(object));

	(void)unused;
	for (size_t copied = 0; copied < size; copied++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		struct record r = new_record(10);

		append(&r, PYBPF_CODE_NAME, object, copied, size);
		append(&r, PYBPF_CODE_FILE, object, copied, copied);
		append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
		add(s, r);
		assert_true(resolved(s, 0).name[0] == '[');
		assert_string_equal(resolved(s, 0).file, "");
		pysym_free(s);
	}
	for (int shift = 4; shift < 64; shift++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		struct record r = new_record(10);
		uint64_t length = (1ULL << shift) + 8;

		memcpy(object + l.str_length, &length, 8);
		append(&r, PYBPF_CODE_NAME, object, size, size);
		append(&r, PYBPF_CODE_FILE, object, size, size);
		add(s, r);
		assert_true(resolved(s, 0).name[0] == '[');
		pysym_free(s);
	}
}

/* Records whose sizes contradict each other are refused, and leave nothing behind. */
static void test_lying_sizes(void **unused)
{
	static const uint32_t lies[] = {
		TOO_MUCH, 0x80000000u, 0xffffffffu, 0xfffffff0u, 0xffffffffu - sizeof(struct pybpf_code_event),
		1u << 20, 10000};
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;

	(void)unused;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		for (int parts = 1; parts < 8; parts++) {
			struct record r = whole_record(1, "f", "/a/b.py");

			for (int part = 0; part < PYBPF_CODE_PARTS; part++) {
				if (parts & 1 << part)
					r.event->part_copied[part] = r.event->part_size[part] = lies[i];
			}
			assert_int_equal(pysym_add_code(s, r.event, r.size), -EBADMSG);
			free(r.event);
		}
	}
	/* Sums that wrap around in 32 bits to what there is. */
	{
		struct record r = whole_record(1, "f", "/a/b.py");

		r.event->part_copied[PYBPF_CODE_NAME] = 0x80000000u;
		r.event->part_copied[PYBPF_CODE_FILE] = 0x80000000u;
		assert_int_equal(pysym_add_code(s, r.event, r.size), -EBADMSG);
		free(r.event);
	}
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), -ENOENT);
	assert_int_equal(pysym_get_counters(s)->codes, 0);
	pysym_free(s);
}

/* Every size that a torn record could have. */
static void test_torn_records(void **unused)
{
	struct record r = whole_record(1, "f", "/a/b.py");

	(void)unused;
	for (size_t size = 0; size < r.size; size++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		/* An object of its own, so that a read beyond it is seen; the header it must have to be called at all.
		 */
		void *copy = malloc(size > 0 ? size : 1);

		assert_non_null(copy);
		memcpy(copy, r.event, size);
		assert_int_equal(pysym_add_code(s, copy, size), -EBADMSG);
		free(copy);
		pysym_free(s);
	}
	free(r.event);
}

/* An invalid line table gives no line. */
static void test_malformed_lines(void **unused)
{
	static const uint8_t junk[] = {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 11, gone_pid());
	struct pybpf_layout l = layout_of(11);
	struct record r = new_record(10);

	(void)unused;
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, junk, sizeof(junk), sizeof(junk));
	add(s, r);
	for (int position = l.code_adaptive; position < 1000; position++)
		assert_int_equal(resolved(s, position).line, -1);
	assert_int_equal(resolved(s, INT32_MAX).line, -1);
	pysym_free(s);
}

/* 3.10 counts positions in code units; from 3.11 on in bytes from the code object's start. */
static void test_positions_by_version(void **unused)
{
	/* 3.10: pairs of bytes and line delta: 4 bytes on line 10, 4 on 11, 4 without a line, 4 on 13. */
	static const uint8_t pep626[] = {4, 0, 4, 1, 4, 0x80, 4, 2};
	/* 3.11: entries of kind 13 (line delta, no columns), 2 code units each: 10, 11; kind 15: none; 13. */
	static const uint8_t pep657[] = {0x80 | 13 << 3 | 1, 0, 0x80 | 13 << 3 | 1, 2, 0x80 | 15 << 3 | 1,
					 0x80 | 13 << 3 | 1, 4};
	static const int lines[] = {10, 11, -1, 13};

	(void)unused;
	for (int minor = 10; minor < 12; minor++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, minor, gone_pid());
		struct pybpf_layout l = layout_of(minor);
		struct record r = new_record(10);

		append_text(&r, &l, PYBPF_CODE_NAME, "f");
		append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
		if (minor == 10)
			append(&r, PYBPF_CODE_LINES, pep626, sizeof(pep626), sizeof(pep626));
		else
			append(&r, PYBPF_CODE_LINES, pep657, sizeof(pep657), sizeof(pep657));
		add(s, r);
		for (int unit = 0; unit < 8; unit++) {
			int position = minor == 10 ? unit : l.code_adaptive + 2 * unit;

			assert_int_equal(resolved(s, position).line, lines[unit / 2]);
		}
		pysym_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_name),         cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_no_lines),        cmocka_unit_test(test_empty_line_table),
		cmocka_unit_test(test_nothing_copied),  cmocka_unit_test(test_lying_strings),
		cmocka_unit_test(test_lying_sizes),     cmocka_unit_test(test_torn_records),
		cmocka_unit_test(test_malformed_lines), cmocka_unit_test(test_positions_by_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
