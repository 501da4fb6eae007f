// SPDX-License-Identifier: Apache-2.0
/* Profiles compared: what is merged, what is compared, and what cannot be. */
#include <errno.h>
#include <math.h>

#include "comparisons.h"

/* main calls f, which calls itself and g; lines differ from one profile to the other. */
static struct profile *small(int pid, int line, unsigned f, unsigned ff, unsigned g)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, pid, "python3");
	uint32_t s = on(p, PROFILE_ROOT, "main", "app.py", 100 + line);
	uint32_t in_f = on(p, s, "f", "app.py", line), in_ff = on(p, in_f, "f", "app.py", line + 1);

	/* In the other order, so that indexes differ, too. */
	if (line > 10)
		take_in(p, on(p, in_f, "g", "app.py", line + 9), owner, g);
	take_in(p, in_f, owner, f);
	take_in(p, in_ff, owner, ff);
	if (line <= 10)
		take_in(p, on(p, in_f, "g", "app.py", line + 9), owner, g);
	return p;
}

static void test_merges_by_function(void **unused)
{
	struct profile *a = small(7, 1, 10, 20, 30), *b = small(8, 20, 11, 22, 33);
	struct diff *d = compared(a, b, &shares);
	uint64_t total[DIFF_SIDES] = {0};
	const struct profile_sample *samples;
	size_t count;

	(void)unused;
	assert_int_equal(profile_frame_count(d->merged), 3);
	assert_int_equal(profile_stack_count(d->merged), 5);
	assert_values(function(d, "f", PROFILE_NO_LINE)->self, 30, 33);
	/* What calls itself is on the stack once. */
	assert_values(function(d, "f", PROFILE_NO_LINE)->total, 60, 66);
	assert_values(function(d, "g", PROFILE_NO_LINE)->self, 30, 33);
	assert_values(function(d, "main", PROFILE_NO_LINE)->self, 0, 0);
	assert_values(function(d, "main", PROFILE_NO_LINE)->total, 60, 66);
	assert_int_equal(d->whole[DIFF_BEFORE].total, 60);
	assert_int_equal(d->whole[DIFF_AFTER].total, 66);
	samples = profile_samples(d->merged, &count);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++) {
		total[DIFF_BEFORE] += d->before[i];
		total[DIFF_AFTER] += samples[i].value;
	}
	assert_int_equal(total[DIFF_BEFORE], 60);
	assert_int_equal(total[DIFF_AFTER], 66);
	assert_int_equal(changes(d), 0);
	diff_free(d);
	profile_free(a);
	profile_free(b);
}

/* A function that has moved has the same lines, as far as from its first one; unless several have its name. */
static void test_moved_functions_have_the_same_lines(void **unused)
{
	static const struct {
		const char *name;
		int first[DIFF_SIDES], line[DIFF_SIDES];
	} functions[] = {{"f", {10, 30}, {12, 32}},    {"changed", {20, 40}, {22, 45}},
			 {"<lambda>", {1, 1}, {1, 1}}, {"<lambda>", {2, 5}, {2, 5}},
			 {"gone", {50, 50}, {51, 51}}, {"forged", {0, INT32_MAX}, {7, 8}}};
	struct profile *runs[DIFF_SIDES] = {new_profile(), new_profile()};
	struct diff_options options = shares;
	struct diff *d;

	(void)unused;
	for (size_t i = 0; i < 2 * sizeof(functions) / sizeof(*functions); i++) {
		size_t side = i % DIFF_SIDES, at = i / DIFF_SIDES;
		struct profile *p = runs[side];
		uint32_t frame = profile_add_frame(p, PROFILE_PYTHON, functions[at].name, "app.py",
						   functions[at].line[side], functions[at].first[side]);

		if (side == DIFF_BEFORE || strcmp(functions[at].name, "gone") != 0)
			take_in(p, profile_add_stack(p, PROFILE_ROOT, frame), process(p, 7, "web"), 10);
	}
	options.by_line = true;
	d = compared(runs[DIFF_BEFORE], runs[DIFF_AFTER], &options);
	assert_values(function(d, "f", 32)->self, 10, 10);
	assert_values(function(d, "changed", 42)->self, 10, 0);
	assert_values(function(d, "changed", 45)->self, 0, 10);
	assert_values(function(d, "<lambda>", 2)->self, 10, 0);
	assert_values(function(d, "<lambda>", 5)->self, 0, 10);
	assert_values(function(d, "gone", 51)->self, 10, 0);
	assert_values(function(d, "forged", 7)->self, 10, 0);
	diff_free(d);
	profile_free(runs[DIFF_BEFORE]);
	profile_free(runs[DIFF_AFTER]);
}

/* A program starts others with other PIDs in each run. */
static void test_waits_for_children_are_one(void **unused)
{
	static const char *const names[] = {"[child: 17]", "[child: 18]", "[child: 4000]"};
	struct profile *runs[DIFF_SIDES] = {new_profile(), new_profile()};
	struct diff *d;

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct profile *p = runs[i / 2];
		uint32_t f = on(p, PROFILE_ROOT, "f", "app.py", 1);

		take_in(p, profile_add_stack(p, f, profile_add_wait(p, "child", names[i], 0)), process(p, 7, "web"),
			10);
	}
	d = compared(runs[DIFF_BEFORE], runs[DIFF_AFTER], &shares);
	assert_int_equal(profile_frame_count(d->merged), 2);
	assert_values(function(d, "[child]", PROFILE_NO_LINE)->self, 20, 10);
	diff_free(d);
	profile_free(runs[DIFF_BEFORE]);
	profile_free(runs[DIFF_AFTER]);
}

static void test_merges_by_line(void **unused)
{
	struct profile *a = small(7, 1, 10, 20, 30), *b = small(8, 2, 11, 22, 33);
	struct diff_options options = shares;
	struct diff *d;

	(void)unused;
	options.by_line = true;
	d = compared(a, b, &options);
	assert_values(function(d, "f", 1)->self, 10, 0);
	assert_values(function(d, "f", 1)->total, 60, 0);
	assert_values(function(d, "f", 2)->self, 20, 11);
	assert_values(function(d, "f", 3)->self, 0, 22);
	assert_values(function(d, "g", 10)->self, 30, 0);
	assert_values(function(d, "g", 11)->self, 0, 33);
	diff_free(d);
	profile_free(a);
	profile_free(b);
}

/* Numbers of processes differ from run to run, names do not; where there are several, they stay apart by name. */
static void test_processes_are_matched_by_name(void **unused)
{
	struct profile *a = new_profile(), *b = new_profile();
	struct diff *d;
	size_t count;

	(void)unused;
	take_in(a, on(a, PROFILE_ROOT, "f", "", 1), process(a, 1, "web"), 5);
	take_in(a, on(a, PROFILE_ROOT, "f", "", 1), process(a, 2, "web"), 6);
	take_in(a, on(a, PROFILE_ROOT, "f", "", 1), process(a, 3, "cron"), 7);
	take_in(b, on(b, PROFILE_ROOT, "f", "", 1), process(b, 4, "web"), 8);
	d = compared(a, b, &shares);
	assert_int_equal(profile_process_count(d->merged), 2);
	assert_true(profile_roots(d->merged) & PROFILE_ROOT_PROCESS);
	profile_samples(d->merged, &count);
	assert_int_equal(count, 2);
	assert_int_equal(d->before[0], 11);
	assert_int_equal(d->before[1], 7);
	diff_free(d);
	profile_free(a);

	/* Alone, a process is the same one as the other, whatever it is called. */
	a = new_profile();
	take_in(a, on(a, PROFILE_ROOT, "f", "", 1), process(a, 9, "python3.11"), 5);
	d = compared(a, b, &shares);
	assert_int_equal(profile_process_count(d->merged), 1);
	assert_int_equal(profile_roots(d->merged), 0);
	diff_free(d);
	profile_free(a);
	profile_free(b);
}

static void test_values_are_in_the_unit_of_the_basis(void **unused)
{
	struct profile *runs[] = {work(2000, 2000, 1000000, "10"), work(2000, 2000, 1000000, "10"),
				  work(3000, 2000, 1000000, "12.5")};
	/* Shares of f, by hand: 50 to 60 %; 200 to 240 ms per second; 2 to 3 s by run. */
	static const double want[][DIFF_SIDES] = {{0.5, 0.6}, {0.2, 0.24}, {2, 3}};
	struct diff_options options = shares;
	double before, after, last = 0;

	(void)unused;
	for (options.basis = DIFF_SHARE; options.basis <= DIFF_TIME; options.basis++) {
		struct diff *d = compared_runs(runs, 2, 1, &options);
		const struct diff_function *f = function(d, "f", PROFILE_NO_LINE);

		assert_values(f->self, 4000, 3000);
		before = diff_amount(d, f->self[DIFF_BEFORE], DIFF_BEFORE);
		after = diff_amount(d, f->self[DIFF_AFTER], DIFF_AFTER);
		assert_true(fabs(before - want[options.basis][DIFF_BEFORE]) < 1e-9);
		assert_true(fabs(after * d->pace - want[options.basis][DIFF_AFTER]) < 1e-9);
		/* Whatever is shown, the change is that of the two amounts. */
		assert_true(fabs(f->change - (after / before - 1)) < 1e-9);
		if (options.basis)
			assert_true(fabs(f->change - last) < 1e-9);
		last = f->change;
		diff_free(d);
	}
	for (size_t i = 0; i < 3; i++)
		profile_free(runs[i]);
}

/* The same of both sides, but for half the samples, each of which stands for twice the time. */
static void test_rates_may_differ_between_sides(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *slow = work(1000, 1000, 2000000, "10");
	struct diff_options options = shares;

	(void)unused;
	for (options.basis = DIFF_SHARE; options.basis <= DIFF_TIME; options.basis++) {
		struct diff *d = compared(a, slow, &options);

		assert_int_equal(changes(d), 0);
		assert_true(fabs(d->time.change) < 1e-9);
		assert_false(d->time.judged);
		diff_free(d);
	}
	profile_free(a);
	profile_free(slow);
}

/* 40 % more, of so many samples that sampling is no reason. */
static void test_tolerance(void **unused)
{
	struct profile *runs[] = {work(1000000, 9000000, 1000000, "10"), work(1001000, 9000000, 1000000, "10"),
				  work(1400000, 9000000, 1000000, "10"), work(1401000, 9000000, 1000000, "10")};
	struct diff_options options = shares;
	struct diff *d;

	(void)unused;
	d = compared_runs(runs, 2, 2, &options);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->verdict, DIFF_GREW);
	assert_false(d->assumed);
	diff_free(d);
	options.tolerance = 0.3;
	d = compared_runs(runs, 2, 2, &options);
	assert_int_equal(changes(d), 0);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->verdict, DIFF_SPREAD);
	assert_true(d->assumed && fabs(d->spread - 0.3) < 1e-9);
	diff_free(d);
	for (size_t i = 0; i < 4; i++)
		profile_free(runs[i]);
}

/* The total: 2, 2.2 and 1.8 s against twice as much; and against 2.1 s. */
static void test_total_time(void **unused)
{
	struct profile *runs[] = {work(1000, 1000, 1000000, "10"), work(1100, 1100, 1000000, "10"),
				  work(900, 900, 1000000, "10"),   work(2000, 2000, 1000000, "10"),
				  work(2200, 2200, 1000000, "10"), work(1800, 1800, 1000000, "10"),
				  work(1050, 1050, 1000000, "10")};
	struct profile *close[] = {runs[0], runs[1], runs[2], runs[6]};
	struct diff_options options = shares;
	struct diff *d;

	(void)unused;
	options.basis = DIFF_TIME;
	d = compared_runs(runs, 3, 3, &options);
	assert_int_equal(changes(d), 0);
	assert_true(d->time.judged && d->time.changed);
	assert_true(fabs(d->time.change - 1) < 1e-9);
	assert_true(d->time.low > 0 && d->time.low < 1 && d->time.high > 1);
	/* By hand: logarithms of 1, 1.1 and 0.9 have a standard deviation of 0.1003. */
	assert_true(fabs(d->time.spread - 0.1003) < 1e-4);
	/* Nothing changed, so that functions are compared with all of all runs. */
	assert_true(fabs(d->whole[DIFF_BEFORE].rest - 6000) < 1e-6 && fabs(d->whole[DIFF_AFTER].rest - 12000) < 1e-6);
	diff_free(d);
	d = compared_runs(close, 3, 1, &options);
	assert_true(d->time.judged && !d->time.changed);
	assert_true(d->time.low < 0 && d->time.high > 0 && d->time.noticeable > 0.3);
	diff_free(d);
	for (size_t i = 0; i < 7; i++)
		profile_free(runs[i]);
}

/* A run of 10 s on two CPUs, of which other programs took so many seconds, and other machines one. */
static struct profile *beside(const char *others_s)
{
	struct profile *p = work(1000, 3000, 1000000, "10");

	assert_int_equal(profile_set_fact(p, PROFILE_FACT_CPUS, "2"), 0);
	if (others_s)
		assert_int_equal(profile_set_fact(p, PROFILE_FACT_OTHERS, others_s), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_STOLEN, "1"), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_WAITED, "2.5"), 0);
	return p;
}

/* Before: others take 1 and 3 s of 20. */
static void test_load_beside(void **unused)
{
	static const struct {
		const char *others[2];
		bool known, uneven;
		double mean;
	} afters[] = {
		{{"0", "2"}, true, false, 0.1},    {{"6", "8"}, true, true, 0.4}, /* 7 and 9 s */
		{{"1", "14"}, true, false, 0.425}, {{"3", "4"}, true, false, 0.225}, {{"8", NULL}, false, false, 0},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(afters) / sizeof(*afters); i++) {
		struct profile *runs[] = {beside("0"), beside("2"), beside(afters[i].others[0]),
					  beside(afters[i].others[1])};
		struct diff *d = compared_runs(runs, 2, 2, &shares);
		const struct diff_load *before = &d->whole[DIFF_BEFORE].load, *after = &d->whole[DIFF_AFTER].load;

		assert_int_equal(d->loads_known, afters[i].known);
		assert_int_equal(d->uneven, afters[i].uneven);
		assert_true(d->waits_known && fabs(d->whole[DIFF_AFTER].wait.most - 0.25) < 1e-9);
		if (afters[i].known) {
			assert_true(fabs(before->mean - 0.1) < 1e-9 && fabs(after->mean - afters[i].mean) < 1e-9);
			assert_true(fabs(before->least - 0.05) < 1e-9 && fabs(before->most - 0.15) < 1e-9);
		}
		diff_free(d);
		for (size_t r = 0; r < 4; r++)
			profile_free(runs[r]);
	}
}

static void assert_refused(struct profile *const runs[], size_t before, size_t after, enum diff_basis basis,
			   const char *word, const char *other)
{
	struct diff_options options = shares;
	struct diff_runs sides[DIFF_SIDES];
	struct diff *d = NULL;
	struct error error = {0};

	options.basis = basis;
	set_sides(sides, runs, before, after);
	assert_int_equal(diff_make(sides, &options, &d, &error), -EINVAL);
	assert_null(d);
	assert_non_null(strstr(error.text, word));
	assert_non_null(strstr(error.text, other));
}

static void test_what_cannot_be_compared(void **unused)
{
	struct profile *a = work(20, 30, 1000000, "10"), *bytes = work(20, 30, 0, "10"), *b = work(1, 2, 1000000, "10");
	struct profile *no_period = work(20, 30, 0, "10"), *no_duration = work(20, 30, 1000000, NULL);
	struct profile *twice = work(20, 30, 2000000, "10"), *copy = work(20, 30, 1000000, "10");

	(void)unused;
	assert_int_equal(profile_set_measure(bytes, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	assert_int_equal(profile_set_fact(a, PROFILE_FACT_START, "1795353671160336663"), 0);
	assert_int_equal(profile_set_fact(copy, PROFILE_FACT_START, "1795353671160336663"), 0);
	assert_refused((struct profile *[]){a, bytes}, 1, 1, DIFF_SHARE, "count", "bytes");
	assert_refused((struct profile *[]){bytes, a}, 1, 1, DIFF_SHARE, "samples", "allocated");
	assert_refused((struct profile *[]){b, a, bytes}, 2, 1, DIFF_SHARE, "old", "new");
	assert_refused((struct profile *[]){a, no_period}, 1, 1, DIFF_TIME, "new", "CPU time");
	assert_refused((struct profile *[]){a, b, no_duration}, 1, 2, DIFF_RATE, "new2", "how long");
	assert_refused((struct profile *[]){b, a, a}, 1, 2, DIFF_SHARE, "new2", "same run");
	assert_refused((struct profile *[]){a, copy, b}, 2, 1, DIFF_SHARE, "old2", "same run");
	assert_refused((struct profile *[]){a, twice, b}, 2, 1, DIFF_SHARE, "old2", "different rates");
	diff_free(compared(a, no_duration, &shares));
	profile_free(a);
	profile_free(b);
	profile_free(bytes);
	profile_free(no_period);
	profile_free(no_duration);
	profile_free(twice);
	profile_free(copy);
}

static void test_nothing_to_judge_by(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *empty = new_profile(), *b = work(1, 9999, 0, NULL);
	struct profile *rootless = new_profile();
	struct diff *d;

	(void)unused;
	/* Without samples, or with none that has frames, on either side or both. */
	take_in(rootless, PROFILE_ROOT, process(rootless, 1, "python3"), 100);
	for (int i = 0; i < 4; i++) {
		d = compared(i & 1 ? a : empty, i & 2 ? rootless : empty, &shares);
		assert_int_not_equal(d->state, DIFF_JUDGED);
		assert_int_equal(changes(d), 0);
		assert_int_equal(d->whole[DIFF_AFTER].total, 0);
		diff_free(d);
	}
	/* Bytes are no draws: how far they go by chance is not known. */
	assert_int_equal(profile_set_measure(a, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	assert_int_equal(profile_set_measure(b, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	d = compared(a, b, &shares);
	assert_int_not_equal(d->state, DIFF_JUDGED);
	assert_int_equal(changes(d), 0);
	diff_free(d);
	profile_free(a);
	profile_free(b);
	profile_free(empty);
	profile_free(rootless);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merges_by_function),
		cmocka_unit_test(test_merges_by_line),
		cmocka_unit_test(test_moved_functions_have_the_same_lines),
		cmocka_unit_test(test_waits_for_children_are_one),
		cmocka_unit_test(test_processes_are_matched_by_name),
		cmocka_unit_test(test_values_are_in_the_unit_of_the_basis),
		cmocka_unit_test(test_rates_may_differ_between_sides),
		cmocka_unit_test(test_tolerance),
		cmocka_unit_test(test_total_time),
		cmocka_unit_test(test_load_beside),
		cmocka_unit_test(test_what_cannot_be_compared),
		cmocka_unit_test(test_nothing_to_judge_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
