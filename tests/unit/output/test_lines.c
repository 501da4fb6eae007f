// SPDX-License-Identifier: Apache-2.0
/* The table as text: by line, of other measures, with notes, of nothing. */
#include <locale.h>

#include "output/truncate.h"
#include "profiles_hostile.h"

static const struct output_options by_line = {.by_line = true};

static void assert_table(const struct profile *p, const struct output_options *options, const char *want)
{
	size_t size;
	char *text = written_bytes(p, output_text, options, &size);

	assert_string_equal(text, want);
	free(text);
}

/* A line counts once however often recursion goes through it; the same line of two functions is two. */
static void test_lines(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), root = on(p, PROFILE_ROOT, "<module>", "app.py", 10), s = root;

	(void)unused;
	for (int i = 0; i < 6; i++)
		s = on(p, s, "f", "app.py", 3 + i % 2);
	take_in(p, s, owner, 60);
	take_in(p, on(p, root, "<lambda>", "app.py", 10), owner, 30);
	take_in(p, on(p, root, "no_line", "app.py", PROFILE_NO_LINE), owner, 9);
	take_in(p, on(p, root, "[incomplete]", "", PROFILE_NO_LINE), owner, 1);
	assert_table(p, &by_line,
		     "    self   self%     total  total%  line\n"
		     "      60   60.0%        60   60.0%  app.py:4  f\n"
		     "      30   30.0%        30   30.0%  app.py:10  <lambda>\n"
		     "       9    9.0%         9    9.0%  app.py  no_line\n"
		     "       1    1.0%         1    1.0%  [incomplete]\n"
		     "       0    0.0%       100  100.0%  app.py:10  <module>\n"
		     "       0    0.0%        60   60.0%  app.py:3  f\n");
	profile_free(p);
}

/* Expressions of one line are rows of their own where they are known; functions have all of theirs. */
static void test_expressions(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	char *text;
	size_t size;

	(void)unused;
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 4, 9}), owner, 50);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 5, 4, 1}), owner, 30);
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), owner, 20);
	assert_table(p, &(struct output_options){.by_line = true, .by_expression = true},
		     "    self   self%     total  total%  expression\n"
		     "      50   50.0%        50   50.0%  app.py:3:5-9  f\n"
		     "      30   30.0%        30   30.0%  app.py:3:5-5:1  f\n"
		     "      20   20.0%        20   20.0%  app.py:3  f\n");
	assert_table(p, &(struct output_options){0},
		     "    self   self%     total  total%  function\n"
		     "     100  100.0%       100  100.0%  f (app.py)\n");
	text = written_bytes(p, output_svg, &(struct output_options){.by_line = true}, &size);
	assert_non_null(strstr(text, "f\napp.py:3:5-9\n50 samples"));
	free(text);
	text = written_bytes(p, output_svg, &(struct output_options){0}, &size);
	assert_null(strstr(text, "app.py:3"));
	free(text);
	profile_free(p);
}

/* Their text is told where the source is known, and can be the one that ran. */
static void test_text_of_expressions(void **unused)
{
	static const char source[] = "\n\n\tx = {\"\xc3\xa4\": g(1,\t2)}\x1b\n\tf(\n\t)\n";
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	const struct output_options options = {.by_line = true, .by_expression = true},
				    narrow = {.by_line = true, .width = 70};

	(void)unused;
	assert_int_equal(profile_set_source(p, "app.py", source), 0);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 12, 19}), owner, 50);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){4, 1, 5, 1, 2}), owner, 30);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 5, 21}), owner, 8);
	/* From and to the middle of a character, a space, the end of a line, and a line that does not exist. */
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 8, 19}), owner, 4);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 5, 8}), owner, 3);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 0, 19}), owner, 2);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 12, 30}), owner, 1);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){9, 1, 9, 12, 30}), owner, 1);
	take_in(p, on_expression(p, PROFILE_ROOT, "f", (struct profile_place){3, 1, 3, 12, 17}), owner, 1);
	assert_table(p, &options,
		     "    self   self%     total  total%  expression\n"
		     "      50   50.0%        50   50.0%  app.py:3:13-19  f: g(1, 2)\n"
		     "      30   30.0%        30   30.0%  app.py:4:2-5:2  f: f( ...\n"
		     "       8    8.0%         8    8.0%  app.py:3:6-21  f: {\"\xc3\xa4\": g(1, 2)}\\x1b\n"
		     "       4    4.0%         4    4.0%  app.py:3:9-19  f\n"
		     "       3    3.0%         3    3.0%  app.py:3:6-8  f\n"
		     "       2    2.0%         2    2.0%  app.py:3:1-19  f\n"
		     "       1    1.0%         1    1.0%  app.py:3:13-30  f\n"
		     "       1    1.0%         1    1.0%  app.py:9:13-30  f\n"
		     "       1    1.0%         1    1.0%  app.py:3:13-17  f\n");
	/* Short ones are whole on a narrow terminal. */
	assert_table(p, &narrow,
		     "    self   self%     total  total%  line\n"
		     "      50   50.0%        50   50.0%  app.py:3:13-19  f: g(1, 2)\n"
		     "      30   30.0%        30   30.0%  app.py:4:2-5:2  f: f( ...\n"
		     "       8    8.0%         8    8.0%  app.py:3:6-21  f: {\"\xc3\xa4\": g...)}\\x1b\n"
		     "       4    4.0%         4    4.0%  app.py:3:9-19  f\n"
		     "       3    3.0%         3    3.0%  app.py:3:6-8  f\n"
		     "       2    2.0%         2    2.0%  app.py:3:1-19  f\n"
		     "       1    1.0%         1    1.0%  app.py:3:13-30  f\n"
		     "       1    1.0%         1    1.0%  app.py:9:13-30  f\n"
		     "       1    1.0%         1    1.0%  app.py:3:13-17  f\n");
	profile_free(p);
}

static void test_time(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), process(p, 42, "python3"), 250);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10000000}), 0);
	assert_table(p, &(struct output_options){0},
		     "250 samples of 10 ms of CPU time each: 2.5 s\n\n"
		     "    self   self%     total  total%  function\n"
		     "     250  100.0%       250  100.0%  f (app.py)\n");
	profile_free(p);
}

/* Numbers that need more room have it, in both tables. */
static void test_other_measure(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);

	(void)unused;
	take_in(p, s, process(p, 42, "a"), 30000000000);
	take_in(p, s, process(p, 43, "b"), 10000000000);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"asleep", "nanoseconds", 0}), 0);
	assert_table(p, &(struct output_options){0},
		     "asleep: 40000000000 nanoseconds\n\n"
		     "     asleep   share  process\n"
		     "30000000000   75.0%  a (42)\n"
		     "10000000000   25.0%  b (43)\n"
		     "\n"
		     "       self   self%        total  total%  function\n"
		     "40000000000  100.0%  40000000000  100.0%  f (app.py)\n");
	profile_free(p);
}

static void test_notes(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), process(p, 42, "python3"), 1);
	assert_int_equal(profile_add_account(p, "asked", "asked", "in the profiled processes", 9), 0);
	assert_int_equal(profile_add_account(p, "lost", "full", "without room", 3), 0);
	assert_int_equal(profile_add_account(p, "lost", "busy", "while busy", 0), 0);
	assert_int_equal(profile_add_account(p, "incomplete", "cut", "", 2), 0);
	assert_table(p, &(struct output_options){0},
		     "    self   self%     total  total%  function\n"
		     "       1  100.0%         1  100.0%  f (app.py)\n"
		     "\n"
		     "lost: 3 without room\n"
		     "incomplete: 2 cut\n");
	profile_free(p);
}

static void test_empty(void **unused)
{
	struct profile *p = new_profile();

	(void)unused;
	take_in(p, PROFILE_ROOT, process(p, 42, "python3"), 1);
	assert_table(p, &(struct output_options){0}, "No sample has Python frames: there is no function to show.\n");
	assert_int_equal(profile_add_account(p, "lost", "full", "without room", 3), 0);
	assert_table(p, &by_line, "No sample has Python frames: there is no line to show.\n\nlost: 3 without room\n");
	profile_free(p);
	p = new_profile();
	profile_set_measure(p, &(struct profile_measure){"gil", "nanoseconds", 0});
	assert_table(p, &(struct output_options){0}, "No thread waited for the GIL: there is no function to show.\n");
	take_in(p, PROFILE_ROOT, process(p, 42, "python3"), 1);
	assert_table(p, &by_line, "Nothing with Python frames was measured: there is no line to show.\n");
	profile_free(p);
}

static void test_hostile_names(void **unused)
{
	struct profile *p = hostile_profile();
	static int (*const writers[])(const struct profile *, const struct output_options *, FILE *) = {output_text,
													output_folded};

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		size_t size, lines = 0;
		char *text = written_bytes(p, writers[i], &by_line, &size);

		/* UTF-8, without anything that a terminal would obey. */
		assert_int_not_equal(mbstowcs(NULL, text, 0), (size_t)-1);
		for (const char *c = text; *c; c++) {
			assert_true(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
			lines += *c == '\n';
		}
		assert_null(strstr(text, "\xe2\x80")); /* what turns text around */
		assert_null(strstr(text, "\xc2\x9b"));
		if (writers[i] == output_folded)
			assert_int_equal(lines, NR_HOSTILE + 1);
		free(text);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expressions),   cmocka_unit_test(test_text_of_expressions),
		cmocka_unit_test(test_lines),         cmocka_unit_test(test_time),
		cmocka_unit_test(test_other_measure), cmocka_unit_test(test_notes),
		cmocka_unit_test(test_empty),         cmocka_unit_test(test_hostile_names),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
