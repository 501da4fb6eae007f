// SPDX-License-Identifier: Apache-2.0
/* A comparison as text and as folded stacks, and which format a name asks for. */
#include "comparisons.h"
#include "output/diff.h"

static char *written_diff(const struct diff *d, const struct output_diff_options *options,
			  int (*write)(const struct diff *, const struct output_diff_options *, FILE *))
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(write(d, options, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void test_text(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *b = work(3000, 2000, 1000000, "12.5");
	struct diff *d = compared(a, b, &shares);
	char *text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_text), *row, verdict[16];
	double before, after, change, low, high, rate_before, rate_after;

	(void)unused;
	assert_non_null(strstr(text, "old: 4000 samples in 10.0 s"));
	assert_non_null(strstr(text, "new: 5000 samples in 12.5 s"));
	assert_non_null(strstr(text, "Self (on top of the stack): 2 functions changed, 0 within the noise"));
	assert_non_null(strstr(text, "Total (on the stack): 2 functions changed, 1 within the noise"));
	/* What grew comes first. */
	assert_true(strstr(text, "\ngrew") < strstr(text, "\nshrank"));
	row = strstr(text, "\ngrew");
	assert_int_equal(sscanf(row, " %15s %lf %lf %lf %lf %lf %lf %lf", verdict, &before, &after, &change, &low,
				&high, &rate_before, &rate_after),
			 8);
	assert_true(before == 50 && after == 60 && change == 10 && rate_before == 200 && rate_after == 240);
	assert_true(low > 0 && low < 10 && high > 10 && high < 20);
	assert_memory_equal(strchr(row + 1, '\n') - strlen("f (app.py)"), "f (app.py)", strlen("f (app.py)"));
	assert_null(strstr(text, "main (app.py)"));
	free(text);
	text = written_diff(d, &(struct output_diff_options){.rows = 40, .all = true}, output_diff_text);
	assert_non_null(strstr(text, "\nnoise"));
	assert_non_null(strstr(text, "main (app.py)"));
	free(text);
	text = written_diff(d, &(struct output_diff_options){.rows = 1}, output_diff_text);
	assert_null(strstr(text, "\nshrank"));
	assert_non_null(strstr(text, "and 1 more"));
	free(text);
	diff_free(d);
	profile_free(a);
	profile_free(b);
}

static void test_text_of_nothing(void **unused)
{
	struct profile *a = work(20, 30, 1000000, "10"), *empty = new_profile();
	struct diff *d = compared(a, empty, &shares);
	char *text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_text);

	(void)unused;
	assert_non_null(strstr(text, "new has no sample with frames"));
	assert_null(strstr(text, "old has no"));
	assert_null(strstr(text, "changed"));
	free(text);
	/* What there is can be asked for. */
	text = written_diff(d, &(struct output_diff_options){.rows = 40, .all = true}, output_diff_text);
	assert_non_null(strstr(text, "f (app.py)"));
	free(text);
	text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_folded);
	assert_string_equal(text, "main (app.py);f (app.py) 20 0\nmain (app.py);g (app.py) 30 0\n");
	free(text);
	diff_free(d);
	d = compared(empty, empty, &shares);
	text = written_diff(d, &(struct output_diff_options){.rows = 40, .all = true}, output_diff_folded);
	assert_string_equal(text, "");
	free(text);
	diff_free(d);
	profile_free(a);
	profile_free(empty);
}

/* Before is scaled to the total after; what is noise has the same number twice. */
static void test_folded(void **unused)
{
	struct profile *a = work(1000, 3000, 1000000, "10"), *b = work(4000, 4000, 1000000, "10");
	struct diff *d;
	char *text;

	(void)unused;
	take_in(a, on(a, PROFILE_ROOT, "odd;name", "", 1), process(a, 1, "python3"), 100);
	take_in(b, on(b, PROFILE_ROOT, "odd;name", "", 1), process(b, 1, "python3"), 200 + 1);
	d = compared(a, b, &shares);
	/* By hand: 8201 / 4100 is 2.0002. */
	text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_folded);
	assert_string_equal(text, "main (app.py);f (app.py) 2000 4000\n"
				  "main (app.py);g (app.py) 6001 4000\n"
				  "odd\\x3bname 201 201\n");
	free(text);
	text = written_diff(d, &(struct output_diff_options){.all = true}, output_diff_folded);
	assert_non_null(strstr(text, "odd\\x3bname 200 201\n"));
	free(text);
	diff_free(d);
	profile_free(a);
	profile_free(b);
}

static void test_formats(void **unused)
{
	(void)unused;
	assert_string_equal(output_diff_by_path("some.dir/file.txt")->name, "text");
	assert_string_equal(output_diff_by_path("file.folded")->name, "folded");
	assert_string_equal(output_diff_by_path("file.htm")->name, "html");
	assert_ptr_equal(output_diff_by_name("raw"), output_by_name("folded"));
	for (const struct output_format *f = output_formats(); f->name; f++)
		assert_ptr_equal(output_diff_by_name(f->name), f->diff ? f : NULL);
	assert_null(output_diff_by_path("file.svg"));
	assert_null(output_diff_by_name("svg"));
	assert_string_equal(output_diff_by_path("some.dir/file")->name, "text");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_of_nothing),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
