// SPDX-License-Identifier: Apache-2.0
/* Two profiles compared: what is merged, what is compared, and what cannot be. */
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
	assert_values(&function(d, "f", PROFILE_NO_LINE)->self, 30, 33);
	/* What calls itself is on the stack once. */
	assert_values(&function(d, "f", PROFILE_NO_LINE)->total, 60, 66);
	assert_values(&function(d, "g", PROFILE_NO_LINE)->self, 30, 33);
	assert_values(&function(d, "main", PROFILE_NO_LINE)->self, 0, 0);
	assert_values(&function(d, "main", PROFILE_NO_LINE)->total, 60, 66);
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
	assert_int_equal(changes(d) + changed_stacks(d), 0);
	diff_free(d);
	profile_free(a);
	profile_free(b);
}

static void test_merges_by_line(void **unused)
{
	struct profile *a = small(7, 1, 10, 20, 30), *b = small(8, 2, 11, 22, 33);
	struct diff_options options = shares;
	struct diff *d;

	(void)unused;
	options.by_line = true;
	d = compared(a, b, &options);
	assert_values(&function(d, "f", 1)->self, 10, 0);
	assert_values(&function(d, "f", 1)->total, 60, 0);
	assert_values(&function(d, "f", 2)->self, 20, 11);
	assert_values(&function(d, "f", 3)->self, 0, 22);
	assert_values(&function(d, "g", 10)->self, 30, 0);
	assert_values(&function(d, "g", 11)->self, 0, 33);
	assert_int_equal(function(d, "g", 10)->self.verdict, DIFF_GONE);
	assert_int_equal(function(d, "g", 11)->self.verdict, DIFF_NEW);
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

static void assert_verdicts(const struct profile *a, const struct profile *b, enum diff_basis basis,
			    enum diff_verdict f, enum diff_verdict g)
{
	struct diff_options options = shares;
	struct diff *d;

	options.basis = basis;
	d = compared(a, b, &options);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->self.verdict, f);
	assert_int_equal(function(d, "g", PROFILE_NO_LINE)->self.verdict, g);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->total.verdict, f);
	diff_free(d);
}

static void test_what_is_compared(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *b = work(3000, 2000, 1000000, "12.5");
	/* The same as a, but for half the samples, each of which stands for twice the time. */
	struct profile *slow = work(1000, 1000, 2000000, "10");

	(void)unused;
	/* A share of g: 50 %, then 40 %. Per second: 200 ms, then 160. In all: 2 s both times. */
	assert_verdicts(a, b, DIFF_SHARE, DIFF_GREW, DIFF_SHRANK);
	assert_verdicts(a, b, DIFF_RATE, DIFF_GREW, DIFF_SHRANK);
	assert_verdicts(a, b, DIFF_TIME, DIFF_GREW, DIFF_NOISE);
	for (enum diff_basis basis = DIFF_SHARE; basis <= DIFF_TIME; basis++)
		assert_verdicts(a, slow, basis, DIFF_NOISE, DIFF_NOISE);
	profile_free(a);
	profile_free(b);
	profile_free(slow);
}

static void test_values_are_in_the_unit_of_the_basis(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *b = work(3000, 2000, 1000000, "12.5");
	/* Of f, by hand: 50 to 60 %; 200 to 240 ms per second; 2 to 3 s. */
	static const double want[] = {0.1, 0.04, 1};
	struct diff_options options = shares;

	(void)unused;
	for (options.basis = DIFF_SHARE; options.basis <= DIFF_TIME; options.basis++) {
		struct diff *d = compared(a, b, &options);
		double got = diff_difference(d, &function(d, "f", PROFILE_NO_LINE)->self);

		assert_true(fabs(got - want[options.basis]) < 1e-9);
		diff_free(d);
	}
	profile_free(a);
	profile_free(b);
}

static void test_tolerance(void **unused)
{
	/* 3 % more, of so many samples that chance is no reason. */
	struct profile *a = work(1000000, 9000000, 1000000, "10"), *b = work(1030000, 8970000, 1000000, "10");
	struct profile *more = work(1070000, 8930000, 1000000, "10");
	struct diff_options options = shares;
	struct diff *d;

	(void)unused;
	assert_verdicts(a, b, DIFF_SHARE, DIFF_GREW, DIFF_SHRANK);
	options.tolerance = 0.05;
	d = compared(a, b, &options);
	assert_int_equal(changes(d), 0);
	diff_free(d);
	d = compared(a, more, &options);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->self.verdict, DIFF_GREW);
	assert_int_equal(function(d, "g", PROFILE_NO_LINE)->self.verdict, DIFF_NOISE);
	diff_free(d);
	profile_free(a);
	profile_free(b);
	profile_free(more);
}

static void assert_refused(const struct profile *a, const struct profile *b, enum diff_basis basis, const char *word,
			   const char *other)
{
	struct diff_options options = shares;
	struct diff *d = NULL;
	struct error error = {0};

	options.basis = basis;
	assert_int_equal(diff_make(a, b, &options, &d, &error), -EINVAL);
	assert_null(d);
	assert_non_null(strstr(error.text, word));
	assert_non_null(strstr(error.text, other));
}

static void test_what_cannot_be_compared(void **unused)
{
	struct profile *a = work(20, 30, 1000000, "10"), *bytes = work(20, 30, 0, "10");
	struct profile *no_period = work(20, 30, 0, "10"), *no_duration = work(20, 30, 1000000, NULL);

	(void)unused;
	assert_int_equal(profile_set_measure(bytes, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	assert_refused(a, bytes, DIFF_SHARE, "count", "bytes");
	assert_refused(bytes, a, DIFF_SHARE, "samples", "allocated");
	assert_refused(a, no_period, DIFF_TIME, "new", "CPU time");
	assert_refused(no_duration, a, DIFF_RATE, "old", "how long");
	assert_verdicts(no_duration, a, DIFF_TIME, DIFF_NOISE, DIFF_NOISE);
	profile_free(a);
	profile_free(bytes);
	profile_free(no_period);
	profile_free(no_duration);
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
		assert_false(d->judged);
		assert_int_equal(changes(d), 0);
		assert_int_equal(d->whole[DIFF_AFTER].total, 0);
		diff_free(d);
	}
	/* Bytes are no draws: how far they go by chance is not known. */
	assert_int_equal(profile_set_measure(a, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	assert_int_equal(profile_set_measure(b, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	d = compared(a, b, &shares);
	assert_false(d->judged);
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
		cmocka_unit_test(test_processes_are_matched_by_name),
		cmocka_unit_test(test_what_is_compared),
		cmocka_unit_test(test_values_are_in_the_unit_of_the_basis),
		cmocka_unit_test(test_tolerance),
		cmocka_unit_test(test_what_cannot_be_compared),
		cmocka_unit_test(test_nothing_to_judge_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
