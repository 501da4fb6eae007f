// SPDX-License-Identifier: Apache-2.0
/* A comparison as text and as folded stacks, and which format a name asks for. */
#include "comparisons.h"
#include "output/diff/diff.h"

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

/* f takes twice as long, and g as long as before, in two runs of each. */
static struct diff *twice_as_long(struct profile *runs[4])
{
	runs[0] = work(1000, 3000, 1000000, "10");
	runs[1] = work(1005, 3000, 1000000, "10");
	runs[2] = work(2000, 3000, 1000000, "12.5");
	runs[3] = work(2005, 3000, 1000000, "12.5");
	return compared_runs(runs, 2, 2, &shares);
}

static void test_text(void **unused)
{
	struct profile *runs[4];
	struct diff *d = twice_as_long(runs);
	char *text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_text), *row;
	double before, after, change, low, high;

	(void)unused;
	/* Two functions: it may be the other one. */
	assert_ptr_equal(strstr(text, "f (app.py) takes 100 % longer: +25 % of the whole; unless g (app.py) changed\n"),
			 text);
	row = strstr(text, "\ngrew ");
	assert_non_null(row);
	assert_int_equal(sscanf(row, "\ngrew %lf %lf %lf %%  f (app.py)\n", &before, &after, &change), 3);
	/* By hand: 2005 and 4005 of 8005, as g takes as many on both sides. */
	assert_true(before == 25.05 && after == 50.03 && change == 100);
	assert_null(strstr(text, "25.0 s"));
	assert_null(strstr(text, "main (app.py)"));
	free(text);
	text = written_diff(d, &(struct output_diff_options){.rows = 40, .all = true}, output_diff_text);
	assert_non_null(strstr(text, "main (app.py)"));
	free(text);
	text = written_diff(d, &(struct output_diff_options){.rows = 40, .explain = true}, output_diff_text);
	assert_non_null(strstr(text, "before  2 runs, 8005 samples, "));
	assert_non_null(strstr(text, " s of CPU time in 25.0 s:\n          new\n"));
	assert_non_null(strstr(text, "\n2 functions have 1 % of the samples"));
	row = strstr(text, "% interval");
	assert_non_null(row);
	row = strstr(row, "\ngrew ");
	assert_non_null(row);
	assert_int_equal(sscanf(row, "\ngrew %lf %% %lf %% to %lf %% ", &change, &low, &high), 3);
	assert_true(low > 0 && low < 100 && high > 100 && high < 200);
	free(text);
	text = written_diff(d, &(struct output_diff_options){.rows = 1, .all = true}, output_diff_text);
	assert_non_null(strstr(text, "and 2 more (--limit)"));
	free(text);
	diff_free(d);
	for (size_t i = 0; i < 4; i++)
		profile_free(runs[i]);
}

/* Returns the first line for a function with that verdict and chance, of a comparison that has more than two. */
static char *first_line(struct diff *d, enum diff_verdict verdict, double chance)
{
	struct diff_function *f = (struct diff_function *)function(d, "f", PROFILE_NO_LINE);
	char *text;

	f->verdict = verdict;
	f->chance = chance;
	d->only_other = PROFILE_NONE;
	d->named = diff_is_change(f);
	d->likely = !d->named;
	text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_text);
	*strchr(text, '\n') = 0;
	return text;
}

static void test_how_sure_it_is(void **unused)
{
	static const struct {
		enum diff_verdict verdict;
		double chance;
		const char *line;
	} wanted[] = {
		{DIFF_GREW, 0.0005, "f (app.py) takes 100 % longer: +25 % of the whole; certain"},
		{DIFF_GREW, 0.002, "f (app.py) takes 100 % longer: +25 % of the whole; 99.8 in 100"},
		{DIFF_GREW, 0.03, "f (app.py) takes 100 % longer: +25 % of the whole; 97 in 100"},
		{DIFF_LIKELY, 0.08, "likely: f (app.py) takes 100 % longer: +25 % of the whole; 92 in 100"},
		{DIFF_LIKELY, 0, "likely: f (app.py) takes 100 % longer: +25 % of the whole; 99.9 in 100"},
	};
	struct profile *runs[4];
	struct diff *d = twice_as_long(runs);
	char *line;

	(void)unused;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		line = first_line(d, wanted[i].verdict, wanted[i].chance);

		assert_string_equal(line, wanted[i].line);
		free(line);
	}
	/* Runs that are not alike: nothing is certain. */
	d->uneven = true;
	d->whole[DIFF_BEFORE].load.mean = 0.041;
	d->whole[DIFF_AFTER].load.mean = 0.81;
	line = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_text);
	assert_ptr_equal(strstr(line,
				"Perhaps not comparable: other programs took 4 % of the machine before, and 81 %\n"
				"after\n"
				"likely: f (app.py) takes 100 % longer: +25 % of the whole; unless the load did\n"),
			 line);
	assert_null(strstr(line, "certain"));
	free(line);
	diff_free(d);
	for (size_t i = 0; i < 4; i++)
		profile_free(runs[i]);
}

/* A number that the runs do not support alone is told with its interval. */
static void test_how_much_it_is(void **unused)
{
	static const struct {
		double change, low, high;
		const char *line;
	} wanted[] = {
		{0.2, 0.1, 0.3, "f (app.py) takes 20 % longer: +25 % of the whole; certain"},
		{0.2, 0.02, 1.1, "f (app.py) takes 20 % longer (+2.0 % to +110 %): +25 % of the whole; certain"},
		{-0.5, -0.7, -0.1, "f (app.py) takes 50 % less time (-70 % to -10 %): +25 % of the whole; certain"},
		{2, 1.9, 2.1, "f (app.py) takes 3.0 times as long: +25 % of the whole; certain"},
		{2, 0.5, 5, "f (app.py) takes 3.0 times as long (1.5 to 6.0): +25 % of the whole; certain"},
		{11, 5, 30, "f (app.py) takes 12 times as long (6.0 to 31): +25 % of the whole; certain"},
	};
	struct profile *runs[4];
	struct diff *d = twice_as_long(runs);

	(void)unused;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		struct diff_function *f = (struct diff_function *)function(d, "f", PROFILE_NO_LINE);
		char *line;

		f->change = wanted[i].change;
		f->low = wanted[i].low;
		f->high = wanted[i].high;
		line = first_line(d, DIFF_GREW, 0.0005);
		assert_string_equal(line, wanted[i].line);
		free(line);
	}
	diff_free(d);
	for (size_t i = 0; i < 4; i++)
		profile_free(runs[i]);
}

static void test_text_of_nothing(void **unused)
{
	struct profile *a = work(20, 30, 1000000, "10"), *empty = new_profile();
	struct diff *d = compared(a, empty, &shares);
	char *text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_text);

	(void)unused;
	assert_non_null(strstr(text, "new has no sample with frames"));
	assert_null(strstr(text, "old has no"));
	assert_null(strstr(text, "take"));
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

/* Before is scaled to what did not change after; such a stack has the same number twice. */
static void test_folded(void **unused)
{
	struct profile *runs[] = {work(1000, 3000, 1000000, "10"), work(1000, 3000, 1000000, "10"),
				  work(4000, 6000, 1000000, "10"), work(4000, 6000, 1000000, "10")};
	struct diff *d;
	char *text;

	(void)unused;
	for (size_t i = 0; i < 4; i++)
		take_in(runs[i], on(runs[i], PROFILE_ROOT, "odd;name", "", 1), process(runs[i], 1, "python3"),
			i < 2 ? 100 : 201);
	d = compared_runs(runs, 2, 2, &shares);
	/* By hand: without f, 12402 after and 6200 before, which is 2.0003 times as many. */
	text = written_diff(d, &(struct output_diff_options){.rows = 40}, output_diff_folded);
	assert_string_equal(text, "main (app.py);f (app.py) 4001 8000\n"
				  "main (app.py);g (app.py) 12000 12000\n"
				  "odd\\x3bname 402 402\n");
	free(text);
	text = written_diff(d, &(struct output_diff_options){.all = true}, output_diff_folded);
	assert_non_null(strstr(text, "odd\\x3bname 400 402\n"));
	free(text);
	diff_free(d);
	for (size_t i = 0; i < 4; i++)
		profile_free(runs[i]);
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
		cmocka_unit_test(test_text),           cmocka_unit_test(test_how_sure_it_is),
		cmocka_unit_test(test_how_much_it_is), cmocka_unit_test(test_text_of_nothing),
		cmocka_unit_test(test_folded),         cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
