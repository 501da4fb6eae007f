// SPDX-License-Identifier: Apache-2.0
/* The walk over memory saved from every Python (tools/save-memory): its stack is what the target said of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <glob.h>
#include <cmocka.h>

#include "known_pythons.h"
#include "saved_memory.h"
#include "symbols/code_content.h"

#define MEMORY "tests/data/memory/"

struct file {
	const char *path;
	uint8_t *bytes;
	size_t size;
	struct saved_memory saved;
};

static int load(void **state)
{
	const char *path = *state;
	struct file *file = calloc(1, sizeof(*file));
	struct error error = {0};
	FILE *in = fopen(path, "rb");

	assert_non_null(file);
	if (!in)
		print_error("%s is missing: run the test in the project's folder\n", path);
	assert_non_null(in);
	fseek(in, 0, SEEK_END);
	file->path = path;
	file->size = (size_t)ftell(in);
	rewind(in);
	file->bytes = malloc(file->size);
	assert_non_null(file->bytes);
	assert_int_equal(fread(file->bytes, 1, file->size, in), file->size);
	fclose(in);
	if (saved_parse(file->bytes, file->size, &file->saved, &error))
		fail_msg("%s: %s", path, error.text);
	*state = file;
	return 0;
}

static int unload(void **state)
{
	struct file *file = *state;

	saved_free(&file->saved);
	free(file->bytes);
	free(file);
	return 0;
}

/* What the walk finds, in a new string; NULL when it finds no thread. */
static char *walk_saved(struct saved_memory *saved)
{
	const struct walk_memory memory = {.read = saved_read, .source = saved};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	assert_non_null(out);
	err = saved_print(&memory, &saved->layout, &saved->proc, saved->header.thread_id, out);
	fclose(out);
	if (err) {
		assert_int_equal(err, -ENOENT);
		free(text);
		return NULL;
	}
	return text;
}

static char *said_by(const struct file *file)
{
	char *said = strndup(file->saved.said, file->saved.header.said_size);

	assert_non_null(said);
	assert_true(strlen(said) > 0);
	return said;
}

static void test_stack_is_what_the_target_said(void **state)
{
	struct file *file = *state;
	char *said = said_by(file), *found = walk_saved(&file->saved);

	assert_non_null(found);
	assert_string_equal(found, said);
	free(found);
	free(said);
}

/*
 * A missing piece of memory costs the frames that were in it, and the stack says so; none is made up, and
 * none changes its place.
 */
static void test_missing_memory_invents_no_frame(void **state)
{
	struct file *file = *state;
	struct saved_memory *saved = &file->saved;
	const struct walk_memory memory = {.read = saved_read, .source = saved};
	struct walk_stack whole, part;

	assert_int_equal(walk_thread(&memory, &saved->layout, &saved->proc, saved->header.thread_id, 0, 0, &whole), 0);
	assert_int_equal(whole.flags, 0);
	for (saved->missing = 0; saved->missing < saved->header.ranges; saved->missing++) {
		int err = walk_thread(&memory, &saved->layout, &saved->proc, saved->header.thread_id, 0, 0, &part);
		uint32_t at = 0;

		if (err) {
			assert_int_equal(err, -EFAULT);
			continue;
		}
		assert_true(part.depth == whole.depth || part.flags);
		for (uint32_t i = 0; i < part.depth; i++, at++) {
			while (at < whole.depth && (whole.frames[at].code != part.frames[i].code ||
						    whole.frames[at].position != part.frames[i].position))
				at++;
			if (at == whole.depth)
				print_error("%s: without %#llx\n", file->path,
					    (unsigned long long)saved->pieces[saved->missing].addr);
			assert_true(at < whole.depth);
		}
		free(part.frames);
	}
	saved->missing = SIZE_MAX;
	free(whole.frames);
}

/* Threads of one process may be walked by one reading of its thread states: each stack is the same. */
static void test_listed_thread_has_the_same_stack(void **state)
{
	struct file *file = *state;
	struct saved_memory *saved = &file->saved;
	const struct walk_memory memory = {.read = saved_read, .source = saved};
	struct walk_list *list = walk_list_new();
	struct walk_stack one, listed;

	assert_non_null(list);
	assert_int_equal(walk_thread(&memory, &saved->layout, &saved->proc, saved->header.thread_id, 0, 0, &one), 0);
	walk_list_begin(list, &memory, &saved->layout, &saved->proc);
	assert_int_not_equal(walk_list_read(list, UINT64_MAX), -ETIMEDOUT);
	/* Twice, as a walk leaves its memory to the next one. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(walk_listed_thread(list, saved->header.thread_id, 0, 0, UINT64_MAX, &listed), 0);
		assert_int_equal(listed.depth, one.depth);
		assert_int_equal(listed.flags, one.flags);
		assert_int_equal(listed.tstate, one.tstate);
		assert_int_equal(listed.gil, one.gil);
		assert_memory_equal(listed.frames, one.frames, one.depth * sizeof(*one.frames));
		free(listed.frames);
	}
	free(one.frames);
	/* A thread that nobody knows: -EFAULT where a part of the lists was not saved. */
	assert_int_equal(walk_listed_thread(list, 1, 0, 0, UINT64_MAX, &listed),
			 walk_thread(&memory, &saved->layout, &saved->proc, 1, 0, 0, &one));
	walk_list_free(list);
}

/* Code objects as a helper sends them have all that the target said. */
static void test_records_of_code_have_the_names(void **state)
{
	struct file *file = *state;
	struct saved_memory *saved = &file->saved;
	const struct walk_memory memory = {.read = saved_read, .source = saved};
	struct pybpf_code_event *record = malloc(PYSYM_RECORD_MAX);
	struct pysym *names = pysym_new(PYSYM_LINES_CURRENT, true);
	char *said = said_by(file), *text = NULL;
	struct walk_stack stack;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(record);
	assert_non_null(out);
	assert_int_equal(pysym_add_process(names, SAVED_PROC_ID, 0, &saved->layout), 0);
	assert_int_equal(walk_thread(&memory, &saved->layout, &saved->proc, saved->header.thread_id, 0, 0, &stack), 0);
	for (uint32_t i = 0; i < stack.depth; i++) {
		size_t bytes = pysym_record_code(&memory, &saved->layout, &stack.frames[i], record);
		struct pysym_frame frame;

		record->event = (struct pybpf_event){.type = PYBPF_EVENT_CODE, .size = (uint32_t)bytes};
		record->proc_id = SAVED_PROC_ID;
		assert_int_equal(pysym_add_read_code(names, record, bytes), 0);
		assert_int_equal(pysym_resolve(names, SAVED_PROC_ID, 0, &stack.frames[i], &frame), 0);
		if (!frame.hidden)
			fprintf(out, "%s\t%s\t%d\n", frame.name, frame.file, frame.line);
	}
	fclose(out);
	assert_string_equal(text, said);
	free(text);
	free(said);
	free(stack.frames);
	free(record);
	pysym_free(names);
}

/* Whom C code called, in the target that was saved: 1; 0: whom a Python function called; -1: versions differ. */
static int is_called_from_c(const char *name, size_t size)
{
	static const struct {
		const char *name;
		int from_c;
	} known[] = {
		{"leaf", 0},         {"nested.<locals>.inner", 0},
		{"nested", 0},       {"main.<locals>.<lambda>.<locals>.<lambda>", 0},
		{"far", 0},          {"far_and_wide.<locals>.<lambda>", 0},
		{"awaiting", 1},                                    /* by send() */
		{"far_and_wide", 0}, {"main.<locals>.<lambda>", 1}, /* by sorted() */
		{"main", 0},         {"<module>", 1},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (size == strlen(known[i].name) && memcmp(name, known[i].name, size) == 0)
			return known[i].from_c;
	}
	return -1;
}

/* To 3.10 each function has an evaluation loop of its own; from 3.11 on only one that C code calls. */
static void test_frames_tell_whom_c_code_called(void **state)
{
	struct file *file = *state;
	struct saved_memory *saved = &file->saved;
	const struct walk_memory memory = {.read = saved_read, .source = saved};
	bool always = saved->layout.major == 2 || saved->layout.minor < 11;
	char *said = said_by(file), *line = said;
	struct walk_stack stack;
	int told = 0;

	assert_int_equal(walk_thread(&memory, &saved->layout, &saved->proc, saved->header.thread_id, 0, 0, &stack), 0);
	for (uint32_t i = 0; i < stack.depth; i++, line = strchr(line, '\n') + 1) {
		size_t size = strcspn(line, "\t");
		int from_c = always ? 1 : is_called_from_c(line, size);

		told += from_c >= 0;
		assert_int_equal(stack.frames[i].kind, PYBPF_FRAME_PYTHON);
		if (from_c >= 0 && stack.frames[i].entry != from_c)
			fail_msg("%s: %.*s is %sa frame that C code called", file->path, (int)size, line,
				 from_c ? "not " : "");
	}
	assert_int_equal(*line, '\0');
	assert_true(always ? told == (int)stack.depth : told >= 10);
	free(stack.frames);
	free(said);
}

static void test_cut_file_is_refused(void **state)
{
	struct file *file = *state;
	struct saved_memory saved;
	struct error error;

	for (size_t size = 0; size < file->size; size += size < sizeof(struct saved_header) ? 1 : 97)
		assert_int_equal(saved_parse(file->bytes, size, &saved, &error), -EBADMSG);
}

/* Every version and kind of build that is supported has its file. */
static void test_nothing_is_missing(void **unused)
{
	char pattern[128];
	glob_t found;

	(void)unused;
	for (size_t i = 0; i < KNOWN_MEMORIES; i++) {
		snprintf(pattern, sizeof(pattern), MEMORY "%s.mem", known_memories[i]);
		if (glob(pattern, 0, NULL, &found))
			fail_msg("there is no %s", pattern);
		globfree(&found);
	}
}

#define TESTS_PER_FILE 6

int main(void)
{
	static const CMUnitTestFunction checks[TESTS_PER_FILE] = {
		test_stack_is_what_the_target_said,    test_missing_memory_invents_no_frame,
		test_frames_tell_whom_c_code_called,   test_cut_file_is_refused,
		test_listed_thread_has_the_same_stack, test_records_of_code_have_the_names};
	static const char *const names[TESTS_PER_FILE] = {
		"the stack is what the target said",  "missing memory invents no frame",
		"frames tell whom C code called",     "a cut file is refused",
		"a listed thread has the same stack", "records of code have the names"};
	struct CMUnitTest *tests;
	glob_t files;
	size_t n = 0;
	int failed;

	if (glob(MEMORY "*.mem", 0, NULL, &files)) {
		fprintf(stderr, "%s holds no files: run the test in the project's folder\n", MEMORY);
		return 1;
	}
	tests = calloc(files.gl_pathc * TESTS_PER_FILE + 1, sizeof(*tests));
	if (!tests)
		return 1;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		for (size_t j = 0; j < TESTS_PER_FILE; j++, n++) {
			char *name;

			if (asprintf(&name, "%s: %s", files.gl_pathv[i] + strlen(MEMORY), names[j]) < 0)
				abort();
			tests[n] = (struct CMUnitTest){
				.name = name,
				.test_func = checks[j],
				.setup_func = load,
				.teardown_func = unload,
				.initial_state = files.gl_pathv[i],
			};
		}
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_nothing_is_missing);
	failed = _cmocka_run_group_tests("saved memory", tests, n, NULL, NULL);
	for (size_t i = 0; i < files.gl_pathc * TESTS_PER_FILE; i++)
		free((void *)tests[i].name);
	free(tests);
	globfree(&files);
	return failed;
}
