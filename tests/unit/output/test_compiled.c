// SPDX-License-Identifier: Apache-2.0
/* The table of compiled code in text. */
#include "profiles.h"

static struct profile *compiled_profile(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), main = on(p, PROFILE_ROOT, "main", "app.py", 9);
	uint32_t fit = on(p, main, "fit", "app.py", 20), wrap = on(p, fit, "wrap", "json/wrap.py", 3);
	uint32_t scan = on_native(p, wrap, "scan", "_json.so");

	assert_int_equal(profile_set_origin(p, "json/wrap.py", PROFILE_STDLIB), 0);
	take_in(p, scan, owner, 30);
	take_in(p, on_native(p, main, "dump", "_json.so"), owner, 12);
	take_in(p, on_native(p, PROFILE_ROOT, "worker", "libz.so.1"), owner, 5);
	take_in(p, on_native(p, scan, "[vdso]", ""), owner, 3);
	/* Called by compiled code, and none. */
	take_in(p, on(p, scan, "hook", "app.py", 40), owner, 50);
	return p;
}

static char *written_with(const struct profile *p, const struct output_options *options)
{
	size_t size;

	return written_bytes(p, output_text, options, &size);
}

static void test_sums_and_callers(void **unused)
{
	struct profile *p = compiled_profile();
	char *text = written(p, output_text);

	(void)unused;
	assert_non_null(strstr(text, "    self   self%  compiled code (50.0% in all)\n"
				     "      42   42.0%  _json.so, called from fit (app.py:20) and 1 more\n"
				     "       5    5.0%  libz.so.1\n"
				     "       3    3.0%  [in no file], called from fit (app.py:20)\n\n"));
	free(text);
	text = written_with(p, &(struct output_options){.by_line = true, .rows = 1});
	assert_non_null(strstr(text, "      42   42.0%  _json.so, called from fit (app.py:20) and 1 more\n"
				     "       8    8.0%  in 2 other files\n\n"));
	free(text);
	profile_free(p);
}

/* The line is the one that called most of the file, or the function's first where lines are not known. */
static void test_lines_of_calls(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), unlined;
	char *text;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "fit", "app.py", 19), owner, 50);
	take_in(p, on_native(p, on(p, PROFILE_ROOT, "fit", "app.py", 20), "f", "liba.so"), owner, 3);
	take_in(p, on_native(p, on(p, PROFILE_ROOT, "fit", "app.py", 21), "f", "liba.so"), owner, 2);
	take_in(p, on_native(p, on(p, PROFILE_ROOT, "fit", "app.py", 21), "g", "liba.so"), owner, 2);
	take_in(p, on_native(p, on(p, PROFILE_ROOT, "other", "app.py", 30), "g", "liba.so"), owner, 6);
	take_in(p, on_native(p, on(p, PROFILE_ROOT, "fit", "app.py", 20), "f", "libb.so"), owner, 1);
	unlined = profile_add_frame(p, PROFILE_PYTHON, "load", "app.py", PROFILE_NO_LINE, 40);
	take_in(p, on_native(p, profile_add_stack(p, PROFILE_ROOT, unlined), "f", "libc.so"), owner, 1);
	text = written(p, output_text);
	assert_non_null(strstr(text, "  liba.so, called from fit (app.py:21) and 1 more\n"));
	assert_non_null(strstr(text, "  libb.so, called from fit (app.py:20)\n"));
	assert_non_null(strstr(text, "  libc.so, called from load (app.py:40)\n"));
	free(text);
	profile_free(p);
}

/* The eight with most have rows, in their order, and one row has all others. */
static void test_many_files(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3");
	char name[24], *text;

	(void)unused;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "lib%d.so.1", i);
		take_in(p, on_native(p, PROFILE_ROOT, "f", name), owner, i < 19 ? 5 : 905);
	}
	text = written(p, output_text);
	assert_non_null(strstr(text, "     905   90.5%  lib19.so.1\n"
				     "       5    0.5%  lib0.so.1\n"));
	assert_non_null(strstr(text, "       5    0.5%  lib6.so.1\n"
				     "      60    6.0%  in 12 other files\n\n"));
	free(text);
	profile_free(p);
}

/* Waits have a table of their own; Python alone has none. */
static void test_no_table(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), f = on(p, PROFILE_ROOT, "f", "app.py", 1);
	uint32_t in_c = on_native(p, f, "nanosleep", "libc.so.6");
	char *text;

	(void)unused;
	take_in(p, f, owner, 2);
	take_in(p, profile_add_stack(p, in_c, profile_add_wait(p, "sleep", "[sleep]", 0)), owner, 2);
	text = written(p, output_text);
	assert_null(strstr(text, "compiled code"));
	free(text);
	profile_free(p);
}

/* A terminal's width: others, the caller's file, the caller, and then a part of the name itself give way. */
static void test_widths(void **unused)
{
	static const struct {
		size_t width;
		const char *row;
	} cases[] = {
		{66, "  _json.so, called from fit (app.py:20) and 1 more\n"},
		{65, "  _json.so, called from fit and 1 more\n"},
		{54, "  _json.so, called from fit and 1 more\n"},
		{53, "  _json.so, called from fit\n"},
		{43, "  _json.so, called from fit\n"},
		{42, "  _json.so\n"},
		{47, "  compiled code (50.0% in all)\n"},
		{46, "  compiled code\n"},
	};
	struct profile *p = compiled_profile();

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = written_with(p, &(struct output_options){.width = cases[i].width});

		if (!strstr(text, cases[i].row))
			fail_msg("%zu columns: no %s in %s", cases[i].width, cases[i].row, text);
		free(text);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_and_callers), cmocka_unit_test(test_lines_of_calls),
		cmocka_unit_test(test_many_files),       cmocka_unit_test(test_no_table),
		cmocka_unit_test(test_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
