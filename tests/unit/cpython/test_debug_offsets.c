// SPDX-License-Identifier: Apache-2.0
/* Tests of debug_*.c: _Py_DebugOffsets of each Python, and hostile ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpython/newer.h"
#include "usable_layout.h"

#define OFFSET_VERSION 8
#define OFFSET_FREE    16

/*
 * Saved tables: "t" ones were compiled from the headers with Py_GIL_DISABLED, the others are from interpreters. In the
 * interpreter states of running ones, of the same sizes, the word at code_guard grew by 7 when seven code objects were
 * compiled (3.13), or freed (3.14, 3.15).
 */
static const struct saved {
	const char *name;
	unsigned int minor, size;
	bool free_threaded;
	uint16_t current_frame, owner, str_ascii_data;
	uint8_t tag_mask;
	uint32_t code_guard;
	uint8_t code_guard_size;
} saved_tables[] = {
	{"3.13", 13, 584, false, 72, 70, 40, 0, 17000, 4},      {"3.13-debug", 13, 584, false, 72, 70, 40, 0, 17016, 4},
	{"3.14", 14, 760, false, 72, 74, 40, 3, 7992, 8},       {"3.14-debug", 14, 760, false, 72, 74, 40, 3, 7992, 8},
	{"3.14t", 14, 760, true, 72, 78, 56, 3, 8024, 8},       {"3.15", 15, 888, false, 72, 74, 40, 3, 7944, 8},
	{"3.15-debug", 15, 888, false, 72, 74, 40, 3, 7944, 8}, {"3.15t", 15, 888, true, 72, 78, 56, 3, 7952, 8},
};

/* In a new buffer of exactly that size, so that ASan sees any byte read beyond it. */
static uint8_t *saved_read(const struct saved *saved)
{
	uint8_t *bytes = malloc(saved->size);
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "tests/data/debug-offsets-%s.bin", saved->name);
	file = fopen(path, "rb");
	if (!file)
		fail_msg("cannot open %s; run the test in the source folder", path);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, saved->size, file), saved->size);
	assert_int_equal(fgetc(file), EOF);
	fclose(file);
	return bytes;
}

static void put_u64(uint8_t *bytes, size_t offset, uint64_t value)
{
	memcpy(bytes + offset, &value, sizeof(value));
}

static void test_saved_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(saved_tables); i++) {
		const struct saved *saved = &saved_tables[i];
		uint8_t *bytes = saved_read(saved);
		struct layout_build build;
		struct error error = {0};

		assert_true(layout_has_debug_offsets(bytes, saved->size));
		if (layout_from_debug_offsets(bytes, saved->size, &build, &error))
			fail_msg("%s: %s", saved->name, error.text);
		assert_usable(&build);
		assert_int_equal(build.layout.major, 3);
		assert_int_equal(build.layout.minor, saved->minor);
		assert_int_equal(build.layout.free_threaded, saved->free_threaded);
		assert_int_equal(build.layout.tstate_frame, saved->current_frame);
		assert_int_equal(build.layout.cframe_frame, NO);
		assert_int_equal(build.layout.frame_code, 0);
		assert_int_equal(build.layout.frame_previous, 8);
		assert_int_equal(build.layout.frame_position, 56);
		assert_int_equal(build.layout.frame_owner, saved->owner);
		assert_int_equal(build.layout.frame_tlbc_index, saved->free_threaded ? 72 : NO);
		assert_int_equal(build.layout.code_type, saved->free_threaded ? 24 : 8);
		assert_int_equal(build.layout.code_tlbc == NO, !saved->free_threaded);
		assert_int_equal(build.layout.code_version + 4 + 16, build.layout.code_filename);
		assert_int_equal(build.layout.code_name, build.layout.code_filename + 8);
		assert_int_equal(build.layout.str_ascii_data, saved->str_ascii_data);
		assert_int_equal(build.layout.str_compact_data, saved->str_ascii_data + 16);
		assert_int_equal(build.layout.str_hash, build.layout.str_length + 8);
		assert_int_equal(build.layout.bytes_data, build.layout.bytes_size + 16);
		assert_int_equal(build.layout.owner_not_python, 3);
		assert_int_not_equal(build.layout.interp_modules, 0);
		assert_int_not_equal(build.layout.interp_collecting, 0);
		assert_int_equal(build.layout.interp_gc_frame != 0, saved->minor >= 15);
		assert_int_not_equal(build.layout.tstate_raised, 0);
		assert_in_range(build.layout.tstate_contexts, build.layout.tstate_thread_id + 8,
				build.layout.tstate_datastack_top - 8);
		assert_int_equal(build.layout.tstate_loop[0] != 0, saved->minor == 13);
		assert_int_equal(build.layout.tstate_dict, 0);
		assert_int_equal(build.layout.caches, 0);
		assert_int_equal(build.layout.code_tag_mask, saved->tag_mask);
		assert_int_equal(build.layout.interp_code_guard, saved->code_guard);
		assert_int_equal(build.layout.code_guard_size, saved->code_guard_size);
		assert_int_equal(build.runtime_tstate_current, LAYOUT_NONE);
		assert_in_range(build.runtime_interp_head, saved->size, saved->size + 64);
		free(bytes);
	}
}

/* What other fields contradict is left out where profiles can do without it. */
static void test_doubtful_fields(void **state)
{
	const struct saved *v15 = &saved_tables[5];
	uint8_t *bytes = saved_read(v15);
	struct layout_build build;
	struct error error = {0};

	(void)state;
	put_u64(bytes, 88, 7408);
	put_u64(bytes, 96, 7600);
	put_u64(bytes, 288, 144);
	assert_int_equal(layout_from_debug_offsets(bytes, v15->size, &build, &error), 0);
	assert_usable(&build);
	assert_int_equal(build.layout.interp_collecting, 0);
	assert_int_equal(build.layout.interp_gc_frame, 0);
	assert_int_equal(build.layout.interp_modules, 0);
	assert_int_equal(build.layout.tstate_raised, 0);
	assert_int_equal(build.layout.tstate_handled, 0);
	free(bytes);
}

/* 3.13 does not tell where its counter is: of a build with another size it is not known. */
static void test_code_guard_of_other_sizes(void **state)
{
	static const size_t sizes[] = {24, 48, 152}; /* of the runtime, of an interpreter state, of a thread state */

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint8_t *bytes = saved_read(&saved_tables[0]);
		struct layout_build build;
		struct error error = {0};
		uint64_t size;

		memcpy(&size, bytes + sizes[i], sizeof(size));
		put_u64(bytes, sizes[i], size + 8);
		assert_int_equal(layout_from_debug_offsets(bytes, saved_tables[0].size, &build, &error), 0);
		assert_int_equal(build.layout.interp_code_guard, i ? 0 : saved_tables[0].code_guard);
		free(bytes);
	}
}

/* Every length short of the table is refused, and nothing beyond it is read (ASan). */
static void test_truncated(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(saved_tables); i++) {
		uint8_t *whole = saved_read(&saved_tables[i]);

		for (size_t len = 0; len < saved_tables[i].size; len++) {
			uint8_t *bytes = malloc(len ? len : 1);
			struct layout_build build;
			struct error error = {0};

			assert_non_null(bytes);
			memcpy(bytes, whole, len);
			assert_int_equal(layout_has_debug_offsets(bytes, len), len >= 8);
			assert_int_equal(layout_from_debug_offsets(bytes, len, &build, &error), -EINVAL);
			assert_true(strlen(error.text) > 0);
			free(bytes);
		}
		free(whole);
	}
}

/* Takes out of a layout what another one lacks, of what profiles can do without. */
static void drop_as(struct pybpf_layout *layout, const struct pybpf_layout *other)
{
	if (!other->interp_modules)
		layout->interp_modules = 0;
	if (!other->interp_collecting) {
		layout->interp_collecting = 0;
		layout->interp_gc_frame = 0;
	}
	if (!other->tstate_handled) {
		layout->tstate_handled = 0;
		layout->tstate_raised = 0;
	}
	if (!other->interp_code_guard) {
		layout->interp_code_guard = 0;
		layout->code_guard_size = 0;
	}
}

/* Returns whether one layout is the other one, but for what it lacks. */
static bool is_same_or_less(const struct layout_build *build, const struct layout_build *original)
{
	struct pybpf_layout expected = original->layout;

	drop_as(&expected, &build->layout);
	return !memcmp(&build->layout, &expected, sizeof(expected)) &&
	       build->runtime_interp_head == original->runtime_interp_head;
}

/* Who notices that a field is wrong, if no other field of the table tells. */
enum noticed {
	BY_TABLE,
	BY_WALK,     /* no frame is found */
	BY_VALIDATE, /* the memory of a process: test_validate.c */
	BY_NOBODY,
};

/* By its place in 3.15's table. */
static enum noticed noticed_3_15(size_t at)
{
	static const struct {
		size_t at;
		enum noticed by;
	} fields[] = {
		{208, BY_WALK},     /* thread_state.current_frame */
		{120, BY_VALIDATE}, /* interpreter_state.ceval_gil */
		{160, BY_NOBODY},   /* interpreter_state.code_object_generation */
		{256, BY_VALIDATE}, /* thread_state.datastack_chunk */
		{264, BY_VALIDATE}, /* thread_state.status */
		{368, BY_NOBODY},   /* interpreter_frame.tlbc_index, of free-threaded builds */
		{456, BY_NOBODY},   /* code_object.co_tlbc, likewise */
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].at == at)
			return fields[i].by;
	return BY_TABLE;
}

/* Each field of 3.15's table in turn is 8 bytes off: refused, of no importance, or left out; or it is in the list. */
static void test_each_field_moved(void **state)
{
	unsigned int refused = 0;

	(void)state;
	for (size_t i = 5; i < ARRAY_SIZE(saved_tables); i++) {
		const struct saved *saved = &saved_tables[i];
		uint8_t *bytes = saved_read(saved);
		struct layout_build original = {0};
		struct error error = {0};

		assert_int_equal(layout_from_debug_offsets(bytes, saved->size, &original, &error), 0);
		for (size_t at = OFFSET_FREE + 8; at < saved->size; at += 8) {
			for (int by = -8; by <= 8; by += 16) {
				struct layout_build build = {0};
				uint64_t value;
				int err;

				memcpy(&value, bytes + at, sizeof(value));
				put_u64(bytes, at, value + (uint64_t)by);
				err = layout_from_debug_offsets(bytes, saved->size, &build, &error);
				put_u64(bytes, at, value);
				refused += err != 0;
				if (!err && !is_same_or_less(&build, &original) && noticed_3_15(at) == BY_TABLE)
					fail_msg("%s: the field at %zu may be moved by %d bytes", saved->name, at, by);
			}
		}
		free(bytes);
	}
	assert_true(refused > 150);
}

/* A field is put between two others, so that all after it are shifted: refused, or it is behind all that are read. */
static void assert_insertions_are_noticed(const struct saved *saved, uint64_t version)
{
	uint8_t *bytes = saved_read(saved), *longer = malloc(saved->size + 8u);
	struct layout_build original = {0};
	struct error error = {0};

	assert_non_null(longer);
	if (version)
		put_u64(bytes, OFFSET_VERSION, version);
	assert_int_equal(layout_from_debug_offsets(bytes, saved->size, &original, &error), 0);
	/* 3.13 ends with gc.collecting, and has nothing behind it that could tell. */
	for (size_t at = OFFSET_FREE + 8; at < saved->size - (saved->minor == 13 ? 8u : 0); at += 8) {
		uint64_t values[4] = {0};

		/* As the next field, 8 bytes behind the one before, and between any others. */
		memcpy(&values[1], bytes + at, sizeof(values[1]));
		memcpy(&values[2], bytes + at - 8, sizeof(values[2]));
		values[2] += 8;
		values[3] = 24;
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			struct layout_build build = {0};

			memcpy(longer, bytes, at);
			put_u64(longer, at, values[i]);
			memcpy(longer + at + 8, bytes + at, saved->size - at);
			if (!layout_from_debug_offsets(longer, saved->size + 8u, &build, &error) &&
			    !is_same_or_less(&build, &original))
				fail_msg("%s: a field may be inserted at %zu", saved->name, at);
		}
	}
	free(bytes);
	free(longer);
}

static void test_inserted_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(saved_tables); i++)
		assert_insertions_are_noticed(&saved_tables[i], 0);
	/* A version that is newer than any known one. */
	for (size_t i = 5; i < ARRAY_SIZE(saved_tables); i++)
		assert_insertions_are_noticed(&saved_tables[i], 0x031000f0);
}

/* Each number in turn becomes a bad one: refused with a sentence and out untouched, or within limits. */
static void test_corrupted(void **state)
{
	static const uint64_t bad[] = {0,
				       1,
				       7,
				       8,
				       16,
				       24,
				       40,
				       64,
				       72,
				       0x100,
				       0xfff8,
				       0xffff,
				       0x10000,
				       0x10008,
				       0x7fffffff,
				       0xfffffff8,
				       0x100000000u,
				       0x7fffffffffffffff,
				       UINT64_MAX - 7,
				       UINT64_MAX};
	unsigned int refused = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(saved_tables); i++) {
		uint8_t *bytes = saved_read(&saved_tables[i]);

		for (size_t at = 0; at < saved_tables[i].size; at += 8) {
			uint8_t saved[8];

			memcpy(saved, bytes + at, 8);
			for (size_t b = 0; b < ARRAY_SIZE(bad); b++) {
				struct layout_build build = {.version_hex = 0x5a5a};
				struct error error = {0};
				int err;

				put_u64(bytes, at, bad[b]);
				err = layout_from_debug_offsets(bytes, saved_tables[i].size, &build, &error);
				if (!err) {
					assert_usable(&build);
					continue;
				}
				assert_int_equal(err, -EINVAL);
				assert_true(strlen(error.text) > 0);
				assert_int_equal(build.version_hex, 0x5a5a);
				refused++;
			}
			memcpy(bytes + at, saved, 8);
		}
		free(bytes);
	}
	assert_true(refused > 1000);
}

static void assert_refused(const struct saved *saved, size_t at, uint64_t value, const char *word)
{
	uint8_t *bytes = saved_read(saved);
	struct layout_build build;
	struct error error = {0};

	put_u64(bytes, at, value);
	assert_int_equal(layout_from_debug_offsets(bytes, saved->size, &build, &error), -EINVAL);
	if (!strstr(error.text, word))
		fail_msg("expected \"%s\" in: %s", word, error.text);
	free(bytes);
}

/* Positions inside the tables are written out here, so that the generator's are checked, too. */
static void test_refusals(void **state)
{
	const struct saved *v13 = &saved_tables[0], *v14 = &saved_tables[2], *v15 = &saved_tables[5];

	(void)state;
	assert_refused(v13, 0, 0, "xdebugpy");
	assert_refused(v13, OFFSET_VERSION, 0x020712f0, "no Python 3");
	assert_refused(v13, OFFSET_VERSION, 0x040000f0, "no Python 3");
	assert_refused(v13, OFFSET_VERSION, 0x1030d00f0, "no Python 3");
	assert_refused(v13, OFFSET_VERSION, 0x030c00f0, "3.13");
	assert_refused(v13, OFFSET_VERSION, 0x030d0000, "no release");
	assert_refused(v13, OFFSET_VERSION, 0x030e00f0, "584 bytes");
	assert_refused(v13, OFFSET_FREE, 2, "free_threaded");
	assert_refused(v13, 24, 0x1000000000, "runtime_state.size");
	assert_refused(v13, 40, 4, "interpreters_head");
	assert_refused(v13, 40, 640, "interpreters_head");
	assert_refused(v14, 72, 7352, "threads_main");
	assert_refused(v14, 192, 16, "overlap");
	assert_refused(v14, 216, 144, "native_thread_id");
	assert_refused(v14, 272, 48, "stackpointer");
	assert_refused(v14, 680, 64, "gen_object");
	/* Inside the table itself. */
	assert_refused(v13, 40, 8, "interpreters_head");
	/* Inside the struct, but not in 16 bits. */
	assert_refused(v13, 64, 0x10000, "interpreter_state.next");
	assert_refused(v13, 72, 12, "interpreter_state.threads_head");
	assert_refused(v13, 232, 20, "interpreter_frame.previous");
	/* Right at the end of the struct's 80 bytes. */
	assert_refused(v13, 232, 80, "interpreter_frame.previous");
	assert_refused(v13, 232, 0, "overlap");
	assert_refused(v13, 312, 70, "code_object.firstlineno");
	assert_refused(v13, 280, 16, "header");
	assert_refused(v13, 328, 20, "localsplusnames");
	assert_refused(v14, 208, 1000000, "thread_state.current_frame");
	assert_refused(v14, 632, 24, "unicode_object.length");
	assert_refused(v14, 640, 36, "unicode_object");
	assert_refused(v15, 208, 320, "windows");
	assert_refused(v15, 744, UINT64_MAX - 7, "unicode_object");
	/* Free-threaded, and yet without thread-local bytecode. */
	assert_refused(v14, OFFSET_FREE, 1, "tlbc_index");
}

/* Include/patchlevel.h: alpha, beta, release candidate, final. */
static void test_release_levels(void **state)
{
	static const uint64_t versions[] = {0x030f00a1, 0x030f00b2, 0x030f00c3, 0x030f00f0};
	const struct saved *v15 = &saved_tables[5];
	uint8_t *bytes = saved_read(v15);
	struct layout_build build;
	struct error error = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		put_u64(bytes, OFFSET_VERSION, versions[i]);
		assert_int_equal(layout_from_debug_offsets(bytes, v15->size, &build, &error), 0);
		assert_int_equal(build.version_hex, versions[i]);
	}
	free(bytes);
}

/* 3.13 has no thread-local bytecode, free-threaded or not. */
static void test_free_threaded_3_13(void **state)
{
	uint8_t *bytes = saved_read(&saved_tables[0]);
	struct layout_build build;
	struct error error = {0};

	(void)state;
	put_u64(bytes, OFFSET_FREE, 1);
	assert_int_equal(layout_from_debug_offsets(bytes, saved_tables[0].size, &build, &error), 0);
	assert_int_equal(build.layout.free_threaded, 1);
	assert_int_equal(build.layout.frame_tlbc_index, NO);
	assert_int_equal(build.layout.code_tlbc, NO);
	assert_int_equal(build.layout.code_tag_mask, 0);
	free(bytes);
}

static void test_newer_minor(void **state)
{
	const struct saved *newest = &saved_tables[5];
	uint8_t *bytes = saved_read(newest);
	struct layout_build known, newer;
	struct error error = {0};

	(void)state;
	assert_int_equal(layout_from_debug_offsets(bytes, newest->size, &known, &error), 0);
	put_u64(bytes, OFFSET_VERSION, 0x031000f0);
	assert_int_equal(layout_from_debug_offsets(bytes, newest->size, &newer, &error), 0);
	assert_usable(&newer);
	assert_int_equal(newer.layout.minor, 16);
	assert_int_equal(newer.version_hex, 0x031000f0);
	assert_int_equal(newer.layout.tstate_thread_id, known.layout.tstate_thread_id);
	assert_int_equal(newer.layout.frame_owner, known.layout.frame_owner);
	assert_int_equal(newer.layout.code_tag_mask, known.layout.code_tag_mask);
	/* Not in the table, hence unknown. */
	assert_int_not_equal(known.layout.code_version, NO);
	assert_int_equal(newer.layout.code_version, NO);
	assert_int_equal(newer.layout.interp_code_guard, 0);
	free(bytes);
}

static void assert_says(const struct pybpf_layout *layout, const char *words)
{
	char text[CPYTHON_LEFT_OUT_MAX];

	cpython_describe_left_out(layout, text);
	if (!strstr(text, words))
		fail_msg("expected \"%s\" in: %s", words, text);
}

/* All that a newer minor has not, of what the same table gives of the known one, is said. */
static void test_newer_minor_says_what_it_lacks(void **state)
{
	(void)state;
	for (size_t i = 5; i < ARRAY_SIZE(saved_tables); i++) {
		uint8_t *bytes = saved_read(&saved_tables[i]);
		struct layout_build known, newer;
		struct pybpf_layout filled;
		struct error error = {0};
		char text[CPYTHON_LEFT_OUT_MAX];

		assert_int_equal(layout_from_debug_offsets(bytes, saved_tables[i].size, &known, &error), 0);
		cpython_describe_left_out(&known.layout, text);
		assert_string_equal(text, "");
		put_u64(bytes, OFFSET_VERSION, 0x031000f0);
		assert_int_equal(layout_from_debug_offsets(bytes, saved_tables[i].size, &newer, &error), 0);
		filled = newer.layout;
		filled.minor = known.layout.minor;
		filled.tstate_window = known.layout.tstate_window;
		filled.code_window = known.layout.code_window;
		assert_says(&newer.layout, "exceptions that are raised or handled, ");
		filled.tstate_handled = known.layout.tstate_handled;
		filled.tstate_raised = known.layout.tstate_raised;
		assert_says(&newer.layout, "stacks of the moment in which a generator stops");
		filled.tstate_datastack_top = known.layout.tstate_datastack_top;
		filled.tstate_contexts = known.layout.tstate_contexts;
		assert_says(&newer.layout, "lines of code that the JIT or Nuitka has compiled may be wrong");
		filled.tstate_executor = known.layout.tstate_executor;
		filled.frame_mark = known.layout.frame_mark;
		assert_says(&newer.layout, "samples take more time");
		filled.code_version = known.layout.code_version;
		filled.interp_code_guard = known.layout.interp_code_guard;
		filled.code_guard_size = known.layout.code_guard_size;
		assert_says(&newer.layout, "names of opcodes, attributes in dump --locals");
		assert_memory_equal(&filled, &known.layout, sizeof(filled));
		/* What the table itself contradicts. */
		cpython_describe_left_out(&newer.layout, text);
		assert_null(strstr(text, "garbage"));
		assert_null(strstr(text, "sys.modules"));
		newer.layout.interp_collecting = 0;
		newer.layout.interp_modules = 0;
		assert_says(&newer.layout, "garbage collections, what is found by sys.modules, ");
		/* The longest text has room. */
		cpython_describe_left_out(&newer.layout, text);
		assert_true(strlen(text) < sizeof(text) - 1);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saved_tables),
		cmocka_unit_test(test_doubtful_fields),
		cmocka_unit_test(test_code_guard_of_other_sizes),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_each_field_moved),
		cmocka_unit_test(test_inserted_fields),
		cmocka_unit_test(test_corrupted),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_release_levels),
		cmocka_unit_test(test_free_threaded_3_13),
		cmocka_unit_test(test_newer_minor),
		cmocka_unit_test(test_newer_minor_says_what_it_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
