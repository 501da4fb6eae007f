// SPDX-License-Identifier: Apache-2.0
/* Folded stacks and the table of functions as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "profiles.h"

static void assert_escaped(const char *text, const char *want)
{
	char *got = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&got, &size);

	assert_non_null(out);
	output_escaped(text, out);
	fclose(out);
	assert_string_equal(got, want);
	free(got);
}

static void take(struct profile *p, uint32_t stack, uint64_t value)
{
	take_in(p, stack, process(p, 42, "python3"), value);
}

static void test_escapes(void **unused)
{
	(void)unused;
	assert_escaped("", "");
	assert_escaped("plain <lambda> a.b", "plain <lambda> a.b");
	assert_escaped("a;b", "a\\x3bb");
	assert_escaped("a\nb\tc\rd\x01"
		       "e\x7f",
		       "a\\x0ab\\x09c\\x0dd\\x01e\\x7f");
	assert_escaped("a\\b", "a\\\\b");
	/* What looks like an escape already stays distinct from one. */
	assert_escaped("\\x3b", "\\\\x3b");
	assert_escaped("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8d", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8d");
}

static void test_empty_profile(void **unused)
{
	struct profile *p = new_profile();
	char *text;

	(void)unused;
	assert_folded(p, "");
	text = written(p, output_text);
	assert_non_null(strstr(text, "function"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	profile_free(p);
}

static void test_folded(void **unused)
{
	struct profile *p = new_profile();
	uint32_t root = on(p, PROFILE_ROOT, "<module>", "app.py", 10);

	(void)unused;
	take(p, on(p, root, "f", "app.py", 3), 7);
	take(p, root, 1);
	take(p, on(p, root, "odd;name\n", "we;ird\\.py", 4), 2);
	take(p, on(p, root, "no_file", "", 4), 3);
	take(p, on(p, root, "no_line", "app.py", PROFILE_NO_LINE), 4);
	take(p, on(p, root, "line_0", "app.py", 0), 5);
	take(p, on(p, root, "f", "app.py", 3), 10);
	assert_folded(p, "<module> (app.py:10);f (app.py:3) 17\n"
			 "<module> (app.py:10) 1\n"
			 "<module> (app.py:10);odd\\x3bname\\x0a (we\\x3bird\\\\.py:4) 2\n"
			 "<module> (app.py:10);no_file 3\n"
			 "<module> (app.py:10);no_line (app.py) 4\n"
			 "<module> (app.py:10);line_0 (app.py:0) 5\n");
	profile_free(p);
}

static void test_notes(void **unused)
{
	struct profile *p = new_profile();
	uint32_t note = profile_add_frame(p, PROFILE_NOTE, "[incomplete]", "", PROFILE_NO_LINE, PROFILE_NO_LINE);
	uint32_t stack = profile_add_stack(p, PROFILE_ROOT, note);

	(void)unused;
	take(p, on(p, stack, "f", "app.py", 3), 1);
	assert_folded(p, "[incomplete];f (app.py:3) 1\n");
	profile_free(p);
}

/* A sample of no frames at all has no line to print. */
static void test_sample_without_frames(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	take(p, PROFILE_ROOT, 9);
	take(p, on(p, PROFILE_ROOT, "f", "app.py", 3), 1);
	assert_folded(p, "f (app.py:3) 1\n");
	profile_free(p);
}

static void test_threads(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	uint32_t one = profile_add_thread(p, owner, 42, "python3");
	uint32_t two = profile_add_thread(p, owner, 43, "a;b\\");
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);

	(void)unused;
	assert_int_equal(profile_add_sample(p, s, owner, one, 1), 0);
	assert_int_equal(profile_add_sample(p, s, owner, two, 2), 0);
	assert_folded(p, "f (app.py:3) 3\n");
	profile_set_roots(p, PROFILE_ROOT_THREAD);
	assert_folded(p, "python3 (42);f (app.py:3) 1\n"
			 "a\\x3bb\\\\ (43);f (app.py:3) 2\n");
	profile_free(p);
}

static void test_deep_stack(void **unused)
{
	enum {
		DEPTH = 8192
	};
	struct profile *p = new_profile();
	uint32_t s = PROFILE_ROOT;
	char *text, *at, want[64];

	(void)unused;
	for (int i = 0; i < DEPTH; i++)
		s = on(p, s, "dive", "deep.py", i);
	take(p, s, 3);
	text = written(p, output_folded);
	at = text;
	for (int i = 0; i < DEPTH; i++) {
		int n = snprintf(want, sizeof(want), "dive (deep.py:%d)%s", i, i + 1 < DEPTH ? ";" : " 3\n");

		assert_memory_equal(at, want, (size_t)n);
		at += n;
	}
	assert_int_equal(*at, '\0');
	free(text);
	profile_free(p);
}

/* The numbers of a function's row in the table. */
static void assert_row(const char *text, const char *function, unsigned self, unsigned total, double self_percent,
		       double total_percent)
{
	const char *at = NULL;
	char *copy = strdup(text), *save = NULL;
	unsigned got_self = 0, got_total = 0;
	double got_self_percent = -1, got_total_percent = -1;
	int rows = 0;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t n = strlen(line), want = strlen(function);

		if (n < want + 2 || strcmp(line + n - want, function) != 0 || line[n - want - 1] != ' ')
			continue;
		at = line;
		rows++;
		assert_int_equal(
			sscanf(line, "%u %lf%% %u %lf%%", &got_self, &got_self_percent, &got_total, &got_total_percent),
			4);
	}
	if (!at)
		print_error("no row for %s in:\n%s", function, text);
	assert_int_equal(rows, 1);
	assert_int_equal(got_self, self);
	assert_int_equal(got_total, total);
	assert_true(got_self_percent > self_percent - 0.06 && got_self_percent < self_percent + 0.06);
	assert_true(got_total_percent > total_percent - 0.06 && got_total_percent < total_percent + 0.06);
	free(copy);
}

static void test_table(void **unused)
{
	struct profile *p = new_profile();
	uint32_t root = on(p, PROFILE_ROOT, "<module>", "app.py", 10);
	uint32_t f = on(p, root, "f", "app.py", 3), other = on(p, root, "f", "app.py", 5);
	uint32_t g = on(p, f, "g", "lib.py", 1);
	char *text;

	(void)unused;
	take(p, f, 10);
	take(p, other, 20); /* another line of the same function */
	take(p, g, 65);
	take(p, root, 5);
	text = written(p, output_text);
	assert_row(text, "<module> (app.py)", 5, 100, 5, 100);
	assert_row(text, "f (app.py)", 30, 95, 30, 95);
	assert_row(text, "g (lib.py)", 65, 65, 65, 65);
	/* Hottest first. */
	assert_true(strstr(text, "g (lib.py)") < strstr(text, "f (app.py)"));
	assert_true(strstr(text, "f (app.py)") < strstr(text, "<module> (app.py)"));
	free(text);
	profile_free(p);
}

/* However often a stack has a function, the sample counts once in its total. */
static void test_table_with_recursion(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "<module>", "app.py", 10);
	char *text;

	(void)unused;
	for (int i = 0; i < 50; i++) {
		s = on(p, s, "even", "app.py", 3);
		s = on(p, s, "odd", "app.py", 6 + i % 2);
	}
	take(p, s, 8);
	take(p, profile_stack_at(p, s)->parent, 2);
	text = written(p, output_text);
	assert_row(text, "even (app.py)", 2, 10, 20, 100);
	assert_row(text, "odd (app.py)", 8, 10, 80, 100);
	assert_row(text, "<module> (app.py)", 0, 10, 0, 100);
	free(text);
	profile_free(p);
}

/* Functions of one name in two files are two; names are escaped; the rest of a long table is summed up. */
static void test_table_rows(void **unused)
{
	struct profile *p = new_profile();
	char name[32], *text;
	int lines = 0;

	(void)unused;
	take(p, on(p, PROFILE_ROOT, "same", "a.py", 1), 1000);
	take(p, on(p, PROFILE_ROOT, "same", "b.py", 1), 2000);
	take(p, on(p, PROFILE_ROOT, "new\nline;", "b.py", 1), 3000);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		take(p, on(p, PROFILE_ROOT, name, "c.py", 1), 1);
	}
	text = written(p, output_text);
	assert_row(text, "same (a.py)", 1000, 1000, 16.13, 16.13);
	assert_row(text, "same (b.py)", 2000, 2000, 32.26, 32.26);
	assert_non_null(strstr(text, "new\\x0aline\\x3b (b.py)\n"));
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_true(lines < 100);
	/* Rows shown and rows left out are all of them: a header and a last line stand beside them. */
	{
		const char *last = strrchr(text, 'a');
		unsigned more = 0;

		while (last > text && (strncmp(last, "and ", 4) != 0 || last[-1] != '\n'))
			last--;
		assert_int_equal(sscanf(last, "and %u ", &more), 1);
		assert_int_equal((unsigned)lines - 2 + more, 203);
	}
	free(text);
	profile_free(p);
}

static void test_formats(void **unused)
{
	(void)unused;
	assert_ptr_equal(output_by_name("folded")->write, output_folded);
	assert_ptr_equal(output_by_name("text")->write, output_text);
	assert_null(output_by_name("nonsense"));
	assert_null(output_by_name(""));
	assert_null(output_by_name("Folded"));
	assert_ptr_equal(output_by_path("x.folded"), output_by_name("folded"));
	assert_ptr_equal(output_by_path("/a.b/x.txt"), output_by_name("text"));
	assert_ptr_equal(output_by_path("profile"), output_by_name("folded"));
	assert_ptr_equal(output_by_path("/some.dir/profile"), output_by_name("folded"));
	assert_null(output_by_path("x.png"));
	assert_null(output_by_path("x.txt.gz"));
	for (const struct output_format *f = output_formats(); f->name; f++) {
		assert_ptr_equal(output_by_name(f->name), f);
		assert_true(f->suffixes[0] == '.' && *f->help);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_empty_profile),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_sample_without_frames),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_deep_stack),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_table_with_recursion),
		cmocka_unit_test(test_table_rows),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
