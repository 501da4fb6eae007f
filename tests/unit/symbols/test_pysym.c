// SPDX-License-Identifier: Apache-2.0
/* Code objects that the kernel announced whole, and frames that are named by them. */
#include "pysym_records.h"
#include "symbols/function.h"

static void test_complete_copy(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pysym_frame out;

	(void)unused;
	add(s, whole_record(10, "Class.method", "/usr/lib/python3.8/json/decoder.py"));
	out = resolved(s, 0);
	assert_string_equal(out.name, "Class.method");
	assert_string_equal(out.file, "json/decoder.py");
	assert_int_equal(out.line, 10);
	assert_false(out.hidden);
	assert_int_equal(resolved(s, 4).line, 11);
	assert_int_equal(resolved(s, 6).line, 11);
	assert_int_equal(resolved(s, 8).line, 12);
	/* Not begun, and a position that is not known. */
	assert_int_equal(resolved(s, -1).line, 10);
	assert_int_equal(resolved(s, PYBPF_NO_POSITION).line, -1);
	assert_int_equal(pysym_get_counters(s)->codes, 1);
	assert_int_equal(pysym_get_counters(s)->unnamed, 0);
	assert_int_equal(pysym_get_counters(s)->no_lines, 0);
	pysym_free(s);
}

static void test_line_modes(void **unused)
{
	static const struct {
		enum pysym_line_mode mode;
		int line;
	} modes[] = {{PYSYM_LINES_CURRENT, 11}, {PYSYM_LINES_FIRST, 10}, {PYSYM_LINES_NONE, -1}};

	(void)unused;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		struct pysym *s = symbols(modes[i].mode, false, 8, gone_pid());

		add(s, whole_record(10, "f", "/a/b.py"));
		assert_int_equal(resolved(s, 4).line, modes[i].line);
		/* One identity for what is printed alike. */
		assert_int_equal(resolved(s, 4).cookie == resolved(s, 8).cookie, modes[i].mode != PYSYM_LINES_CURRENT);
		pysym_free(s);
	}
}

static struct record record_311(const uint8_t *lines, size_t size)
{
	struct pybpf_layout l = layout_of(11);
	struct record r = new_record(10);

	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/a/b.py");
	append(&r, PYBPF_CODE_LINES, lines, size, size);
	return r;
}

/* The instructions that enter a function have no expression. A code object without columns is counted if they were
 * asked for. */
static void test_expressions(void **unused)
{
	static const uint8_t table[] = {0xd0, 0, 0, 0xd8, 5, 9}, no_columns[] = {0xe8, 0, 0xe8, 2};
	const int32_t code = layout_of(11).code_adaptive;
	struct pysym *s = symbols(PYSYM_EXPRESSIONS, false, 11, gone_pid());

	(void)unused;
	add(s, record_311(table, sizeof(table)));
	assert_int_equal(resolved(s, code).line, 10);
	assert_int_equal(resolved(s, code).span.end_line, 0);
	assert_int_equal(resolved(s, code + 2).line, 11);
	assert_int_equal(resolved(s, code + 2).span.end_line, 11);
	assert_int_equal(resolved(s, code + 2).span.column, 5);
	assert_int_equal(resolved(s, code + 2).span.end_column, 9);
	assert_int_equal(pysym_get_counters(s)->no_columns, 0);
	pysym_free(s);
	s = symbols(PYSYM_EXPRESSIONS, false, 11, gone_pid());
	add(s, record_311(no_columns, sizeof(no_columns)));
	assert_int_equal(resolved(s, code + 2).line, 11);
	assert_int_equal(resolved(s, code + 2).span.end_line, 0);
	assert_int_equal(pysym_get_counters(s)->no_columns, 1);
	pysym_free(s);
	s = symbols(PYSYM_EXPRESSIONS, false, 8, gone_pid());
	add(s, whole_record(10, "f", "/a/b.py"));
	assert_int_equal(pysym_get_counters(s)->no_columns, 1);
	pysym_free(s);
	s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	add(s, whole_record(10, "f", "/a/b.py"));
	assert_int_equal(pysym_get_counters(s)->no_columns, 0);
	pysym_free(s);
}

static void test_full_filenames(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, true, 8, gone_pid());

	(void)unused;
	add(s, whole_record(10, "f", "/usr/lib/python3.8/json/decoder.py"));
	assert_string_equal(resolved(s, 0).file, "/usr/lib/python3.8/json/decoder.py");
	pysym_free(s);
}

static void test_cookie(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	uint32_t *cookie;

	(void)unused;
	add(s, whole_record(10, "f", "/a/b.py"));
	cookie = resolved(s, 0).cookie;
	assert_int_equal(*cookie, UINT32_MAX);
	*cookie = 5;
	assert_int_equal(*resolved(s, 0).cookie, 5);
	assert_int_equal(*resolved(s, 4).cookie, UINT32_MAX);
	pysym_free(s);
}

/* What was returned stays valid however much comes after it. */
static void test_many_codes(void **unused)
{
	enum {
		N = 5000
	};
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pysym_frame *frames = calloc(N, sizeof(*frames));
	char name[32];

	(void)unused;
	assert_non_null(frames);
	for (int i = 0; i < N; i++) {
		struct pybpf_frame frame = {.code = CODE + (uint64_t)i / 2 * 16, .sig = SIG + (uint32_t)i % 2};
		struct record r;

		snprintf(name, sizeof(name), "f%d", i);
		r = whole_record(i, name, "/a/b.py");
		r.event->code = frame.code;
		r.event->sig = frame.sig;
		add(s, r);
		assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &frames[i]), 0);
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_string_equal(frames[i].name, name);
		assert_string_equal(frames[i].file, "b.py");
		assert_int_equal(*frames[i].cookie, UINT32_MAX);
	}
	assert_int_equal(pysym_get_counters(s)->codes, N);
	free(frames);
	pysym_free(s);
}

/* The first announcement stands: frames were named by it. */
static void test_announced_twice(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());

	(void)unused;
	add(s, whole_record(10, "first", "/a/b.py"));
	add(s, whole_record(20, "second", "/a/c.py"));
	assert_string_equal(resolved(s, 0).name, "first");
	assert_int_equal(pysym_get_counters(s)->codes, 1);
	pysym_free(s);
}

/* The same address in another process, and with another signature, is another code object. */
static void test_same_address(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_layout layout = layout_of(8);
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;
	struct record r;

	(void)unused;
	assert_int_equal(pysym_add_process(s, PROC + 1, gone_pid(), &layout), 0);
	add(s, whole_record(10, "one", "/a/b.py"));
	r = whole_record(10, "two", "/a/b.py");
	r.event->sig++;
	add(s, r);
	r = whole_record(10, "three", "/a/b.py");
	r.event->proc_id++;
	add(s, r);
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), 0);
	assert_string_equal(out.name, "one");
	assert_int_equal(pysym_resolve(s, PROC + 1, 0, &frame, &out), 0);
	assert_string_equal(out.name, "three");
	frame.sig++;
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), 0);
	assert_string_equal(out.name, "two");
	assert_int_equal(pysym_resolve(s, PROC + 1, 0, &frame, &out), -ENOENT);
	pysym_free(s);
}

/* Frames come by processes, so that the last one is remembered: not once it is removed. */
static void test_removed_process(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;

	(void)unused;
	add(s, whole_record(10, "one", "/a/b.py"));
	assert_string_equal(resolved(s, 0).name, "one");
	pysym_remove_process(s, PROC);
	assert_false(pysym_has_process(s, PROC));
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), -ENOENT);
	pysym_free(s);
}

static pid_t lives;

/*
 * The first folder is not shown, where there still is a process whose folders can be looked at; what is in bin counts
 * as a console script.
 */
static int look_at_paths(pid_t pid, const char *path, struct pysym_file *out)
{
	if (pid != lives)
		return -ENOENT;
	*out = (struct pysym_file){.shown = strlen("/a/"), .console_script = strstr(path, "/bin/") != NULL};
	return 0;
}

/* A file of a process that has ended is shown as that of another one. */
static void test_path_of_an_ended_process(void **unused)
{
	struct pybpf_layout layout = layout_of(8);
	struct pysym *s;
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;
	struct record r = whole_record(10, "two", "/a/b/c.py");

	(void)unused;
	lives = getpid();
	s = symbols(PYSYM_LINES_CURRENT, false, 8, lives);
	pysym_look_at_paths_by(s, look_at_paths);
	assert_int_equal(pysym_add_process(s, PROC + 1, gone_pid(), &layout), 0);
	add(s, whole_record(10, "one", "/a/b/c.py"));
	r.event->proc_id++;
	add(s, r);
	assert_string_equal(resolved(s, 0).file, "b/c.py");
	assert_int_equal(pysym_resolve(s, PROC + 1, 0, &frame, &out), 0);
	assert_string_equal(out.file, "b/c.py");
	pysym_free(s);
}

/* So is whether it is a console script, also where paths are shown as they are. */
static void test_console_script_of_an_ended_process(void **unused)
{
	struct pybpf_layout layout = layout_of(8);
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};

	(void)unused;
	lives = getpid();
	for (int full = 0; full < 2; full++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, full, 8, lives);
		struct record r = whole_record(10, "two", "/a/bin/flask");
		struct pysym_frame out;

		pysym_look_at_paths_by(s, look_at_paths);
		assert_int_equal(pysym_add_process(s, PROC + 1, gone_pid(), &layout), 0);
		add(s, whole_record(10, "one", "/a/bin/flask"));
		r.event->proc_id++;
		add(s, r);
		assert_true(resolved(s, 0).console_script);
		assert_int_equal(pysym_resolve(s, PROC + 1, 0, &frame, &out), 0);
		assert_string_equal(out.file, full ? "/a/bin/flask" : "bin/flask");
		assert_true(out.console_script);
		pysym_free(s);
	}
}

/* Two functions of one name and line, such as lambdas, have each its own line table. */
static void test_same_name(void **unused)
{
	static const uint8_t others[] = {4, 5, 4, 5};
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, true, 8, gone_pid());
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(10);
	struct pybpf_frame frame = {.code = CODE + 64, .sig = SIG, .position = 4};
	struct pysym_frame other;

	(void)unused;
	add(s, whole_record(10, "f", "/app.py"));
	append_text(&r, &l, PYBPF_CODE_NAME, "f");
	append_text(&r, &l, PYBPF_CODE_FILE, "/app.py");
	append(&r, PYBPF_CODE_LINES, others, sizeof(others), sizeof(others));
	r.event->code = frame.code;
	add(s, r);
	assert_int_equal(resolved(s, 4).line, 11);
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &other), 0);
	assert_int_equal(other.line, 15);
	pysym_free(s);
}

/* The room that line tables take is there again when their functions are gone: a run may see any number of them. */
static void test_room_for_lines(void **unused)
{
	struct pysym_functions functions;
	struct pybpf_layout l = layout_of(8);
	struct pysym_code_content content = {.name = "f", .lines = (uint8_t *)lnotab, .lines_size = sizeof(lnotab)};
	struct pysym_path *path;
	size_t before;
	(void)unused;

	pysym_functions_init(&functions, PYSYM_LINES_CURRENT);
	before = pysym_lines_room(&functions);
	path = pysym_path_take(&functions, "/app.py");
	assert_non_null(path);
	for (int i = 0; i < 2; i++) {
		struct pysym_function *function =
			pysym_function_take(&functions, &content, &l, path, &(struct pysym_file){0});

		assert_non_null(function);
		assert_int_equal(pysym_lines_room(&functions), before - sizeof(lnotab));
		pysym_function_drop(&functions, function);
		assert_int_equal(pysym_lines_room(&functions), before);
	}
	pysym_path_drop(&functions, path);
	pysym_functions_free(&functions);
}

static void test_unknown(void **unused)
{
	struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	struct pybpf_frame frame = {.code = CODE, .sig = SIG};
	struct pysym_frame out;
	struct record r = whole_record(1, "f", "/a/b.py");

	(void)unused;
	/* Nothing was announced, and the process can't be asked any more. */
	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), -ENOENT);
	assert_int_equal(pysym_resolve(s, PROC + 1, 0, &frame, &out), -ENOENT);
	r.event->proc_id = PROC + 1;
	assert_int_equal(pysym_add_code(s, r.event, r.size), -ENOENT);
	free(r.event);
	assert_int_equal(pysym_get_counters(s)->codes, 0);
	pysym_free(s);
	pysym_free(NULL);
}

/* _Py_InitCleanup, which 3.12 pushes below an inlined __init__: one object for name and file, no line. */
static void test_trampoline(void **unused)
{
	static const struct {
		uint64_t name, file;
		int first_line;
		bool hidden;
	} cases[] = {{1, 1, 0, true}, {1, 2, 0, false}, {1, 1, 1, false}, {1, 2, 1, false}};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pysym *s = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
		struct record r = whole_record(cases[i].first_line, "f", "f");

		r.event->part_addr[PYBPF_CODE_NAME] = cases[i].name * 0x1000;
		r.event->part_addr[PYBPF_CODE_FILE] = cases[i].file * 0x1000;
		add(s, r);
		assert_int_equal(resolved(s, 0).hidden, cases[i].hidden);
		pysym_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete_copy),
		cmocka_unit_test(test_line_modes),
		cmocka_unit_test(test_full_filenames),
		cmocka_unit_test(test_cookie),
		cmocka_unit_test(test_many_codes),
		cmocka_unit_test(test_announced_twice),
		cmocka_unit_test(test_same_address),
		cmocka_unit_test(test_same_name),
		cmocka_unit_test(test_removed_process),
		cmocka_unit_test(test_path_of_an_ended_process),
		cmocka_unit_test(test_console_script_of_an_ended_process),
		cmocka_unit_test(test_room_for_lines),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_trampoline),
		cmocka_unit_test(test_expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
