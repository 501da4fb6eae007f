// SPDX-License-Identifier: Apache-2.0
/* Two profiles compared: what is merged, what is called a change, and how rarely chance is called one. */
#include <errno.h>
#include <math.h>

#include "profiles.h"
#include "output/diff.h"
#include "compare/diff.h"

static const struct profile_diff_options shares = {.confidence = 0.95, .names = {"old", "new"}};

static struct profile_diff *compared(const struct profile *before, const struct profile *after,
				     const struct profile_diff_options *options)
{
	struct profile_diff *d = NULL;
	struct error error = {0};

	if (profile_diff(before, after, options, &d, &error))
		fail_msg("%s", error.text);
	assert_string_equal(error.text, "");
	assert_non_null(d);
	return d;
}

/* The entry of the function, which must be there, by line at that line. */
static const struct profile_diff_entry *function(const struct profile_diff *d, const char *name, int line)
{
	const struct profile_diff_entry *found = NULL;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++) {
		const struct profile_frame *f = profile_frame(d->merged, i);

		if (strcmp(profile_string(d->merged, f->name), name) != 0 || f->line != line)
			continue;
		assert_null(found);
		found = &d->functions[i];
	}
	if (!found)
		fail_msg("there is no %s:%d", name, line);
	return found;
}

static void assert_values(const struct profile_diff_change *change, unsigned before, unsigned after)
{
	assert_int_equal(change->value[PROFILE_DIFF_BEFORE], before);
	assert_int_equal(change->value[PROFILE_DIFF_AFTER], after);
}

static unsigned changes(const struct profile_diff *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++)
		n += (d->functions[i].self.verdict != PROFILE_DIFF_NOISE) +
		     (d->functions[i].total.verdict != PROFILE_DIFF_NOISE);
	return n;
}

static unsigned changed_stacks(const struct profile_diff *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < profile_stack_count(d->merged); i++)
		n += (d->stacks[i].self.verdict != PROFILE_DIFF_NOISE) +
		     (d->stacks[i].total.verdict != PROFILE_DIFF_NOISE);
	return n;
}

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
	struct profile_diff *d = compared(a, b, &shares);
	uint64_t total[PROFILE_DIFF_SIDES] = {0};
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
	assert_int_equal(d->whole[PROFILE_DIFF_BEFORE].total, 60);
	assert_int_equal(d->whole[PROFILE_DIFF_AFTER].total, 66);
	samples = profile_samples(d->merged, &count);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++) {
		total[PROFILE_DIFF_BEFORE] += d->before[i];
		total[PROFILE_DIFF_AFTER] += samples[i].value;
	}
	assert_int_equal(total[PROFILE_DIFF_BEFORE], 60);
	assert_int_equal(total[PROFILE_DIFF_AFTER], 66);
	assert_int_equal(changes(d) + changed_stacks(d), 0);
	profile_diff_free(d);
	profile_free(a);
	profile_free(b);
}

static void test_merges_by_line(void **unused)
{
	struct profile *a = small(7, 1, 10, 20, 30), *b = small(8, 2, 11, 22, 33);
	struct profile_diff_options options = shares;
	struct profile_diff *d;

	(void)unused;
	options.by_line = true;
	d = compared(a, b, &options);
	assert_values(&function(d, "f", 1)->self, 10, 0);
	assert_values(&function(d, "f", 1)->total, 60, 0);
	assert_values(&function(d, "f", 2)->self, 20, 11);
	assert_values(&function(d, "f", 3)->self, 0, 22);
	assert_values(&function(d, "g", 10)->self, 30, 0);
	assert_values(&function(d, "g", 11)->self, 0, 33);
	assert_int_equal(function(d, "g", 10)->self.verdict, PROFILE_DIFF_GONE);
	assert_int_equal(function(d, "g", 11)->self.verdict, PROFILE_DIFF_NEW);
	profile_diff_free(d);
	profile_free(a);
	profile_free(b);
}

/* Numbers of processes differ from run to run, names do not; where there are several, they stay apart by name. */
static void test_processes_are_matched_by_name(void **unused)
{
	struct profile *a = new_profile(), *b = new_profile();
	struct profile_diff *d;
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
	profile_diff_free(d);
	profile_free(a);

	/* Alone, a process is the same one as the other, whatever it is called. */
	a = new_profile();
	take_in(a, on(a, PROFILE_ROOT, "f", "", 1), process(a, 9, "python3.11"), 5);
	d = compared(a, b, &shares);
	assert_int_equal(profile_process_count(d->merged), 1);
	assert_int_equal(profile_roots(d->merged), 0);
	profile_diff_free(d);
	profile_free(a);
	profile_free(b);
}

/* A tree of 80 functions in 20 modules below main, in which function i weighs 1 / (i + 1). */
enum {
	FUNCTIONS = 80,
	MODULES = 20,
};

struct tree {
	struct profile *p;
	uint32_t owner, stacks[FUNCTIONS];
	double weights[FUNCTIONS];
};

static struct tree new_tree(void)
{
	struct tree tree = {.p = new_profile()};
	uint32_t root = on(tree.p, PROFILE_ROOT, "main", "app.py", 1);
	char name[32], file[32];

	tree.owner = process(tree.p, 42, "python3");
	for (int i = 0; i < FUNCTIONS; i++) {
		uint32_t module;

		snprintf(file, sizeof(file), "m%d.py", i % MODULES);
		module = on(tree.p, root, "entry", file, 1);
		snprintf(name, sizeof(name), "f%d", i);
		tree.stacks[i] = on(tree.p, module, name, file, 2);
		tree.weights[i] = 1.0 / (i + 1);
	}
	return tree;
}

/* Marsaglia's xorshift64*, 2003 (Vigna, 2014): the same draws at each run. 0 to 1. */
static double draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (double)(*state * 0x2545f4914f6cdd1d >> 11) / (double)(1ull << 53);
}

static int pick(const struct tree *tree, uint64_t *state)
{
	double all = 0, at;
	int i = 0;

	for (int f = 0; f < FUNCTIONS; f++)
		all += tree->weights[f];
	for (at = draw(state) * all; i < FUNCTIONS - 1 && at >= tree->weights[i]; i++)
		at -= tree->weights[i];
	return i;
}

static void sample(struct tree *tree, unsigned samples, uint64_t *state)
{
	for (unsigned i = 0; i < samples; i++)
		take_in(tree->p, tree->stacks[pick(tree, state)], tree->owner, 1);
}

/* Of pairs from one distribution, in how many is any function, or any stack, called changed? */
static void count_false(const struct profile_diff_options *options, unsigned samples_a, unsigned samples_b, int pairs,
			uint64_t state, int *functions, int *stacks)
{
	*functions = *stacks = 0;
	for (int i = 0; i < pairs; i++) {
		struct tree a = new_tree(), b = new_tree();
		struct profile_diff *d;

		profile_set_fact(a.p, PROFILE_FACT_DURATION, "10");
		profile_set_fact(b.p, PROFILE_FACT_DURATION, "10");
		profile_set_measure(a.p, &(struct profile_measure){"samples", "count", 1000000});
		profile_set_measure(b.p, &(struct profile_measure){"samples", "count", 1000000});
		sample(&a, samples_a, &state);
		sample(&b, samples_b, &state);
		d = compared(a.p, b.p, options);
		assert_true(d->judged && d->tested > 40);
		*functions += changes(d) > 0;
		*stacks += changed_stacks(d) > 0;
		profile_diff_free(d);
		profile_free(a.p);
		profile_free(b.p);
	}
}

static void test_chance_is_rarely_called_a_change(void **unused)
{
	struct profile_diff_options rates = shares;
	int functions, stacks;

	(void)unused;
	/* At 95 %, 10 of 200 pairs may have one. */
	count_false(&shares, 2000, 3000, 200, 1, &functions, &stacks);
	print_message("shares: functions changed in %d, stacks in %d of 200 pairs\n", functions, stacks);
	assert_in_range(functions, 0, 10);
	assert_in_range(stacks, 0, 10);
	rates.basis = PROFILE_DIFF_RATE;
	count_false(&rates, 2000, 2000, 200, 2, &functions, &stacks);
	print_message("rates: functions changed in %d, stacks in %d of 200 pairs\n", functions, stacks);
	assert_in_range(functions, 0, 10);
	assert_in_range(stacks, 0, 10);
}

/* With times, where what is worked on stays the same for some samples: a burst. */
static void sample_bursts(struct tree *tree, unsigned samples, unsigned burst, uint64_t *state)
{
	int at = 0;

	for (unsigned i = 0; i < samples; i++) {
		if (draw(state) < 1.0 / burst || !i)
			at = pick(tree, state);
		take_in(tree->p, tree->stacks[at], tree->owner, 1);
		assert_int_equal(
			profile_add_event(tree->p, i * 1000000ull,
					  profile_find_sample(tree->p, tree->stacks[at], tree->owner, PROFILE_NONE), 1),
			0);
	}
}

/* The same samples without their times. */
static struct profile *without_times(const struct profile *p)
{
	struct profile *copy = new_profile();
	const struct profile_sample *samples;
	size_t count;

	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		const struct profile_frame *f = profile_frame(p, i);

		assert_int_equal(profile_add_frame(copy, f->kind, profile_string(p, f->name),
						   profile_string(p, f->file), f->line, f->first_line),
				 i);
	}
	for (uint32_t i = 1; i < profile_stack_count(p); i++)
		assert_int_equal(profile_add_stack(copy, profile_stack(p, i)->parent, profile_stack(p, i)->frame), i);
	samples = profile_samples(p, &count);
	for (size_t i = 0; i < count; i++)
		take_in(copy, samples[i].stack, process(copy, 42, "python3"), samples[i].value);
	return copy;
}

static void test_bursts_are_chance(void **unused)
{
	int with = 0, without = 0;
	uint64_t state = 3;

	(void)unused;
	/* At 95 %, 5 of 100 may have one. */
	for (int i = 0; i < 100; i++) {
		struct tree a = new_tree(), b = new_tree();
		struct profile *a_counts, *b_counts;
		struct profile_diff *d;

		sample_bursts(&a, 6000, 10, &state);
		sample_bursts(&b, 6000, 10, &state);
		d = compared(a.p, b.p, &shares);
		with += changes(d) > 0;
		profile_diff_free(d);
		a_counts = without_times(a.p);
		b_counts = without_times(b.p);
		d = compared(a_counts, b_counts, &shares);
		without += changes(d) > 0;
		profile_diff_free(d);
		profile_free(a_counts);
		profile_free(b_counts);
		profile_free(a.p);
		profile_free(b.p);
	}
	print_message("bursts: changes in %d of 100 pairs with times, in %d without\n", with, without);
	assert_in_range(with, 0, 5);
	/* What is not known cannot be allowed for. */
	assert_true(without > 50);
}

static void take_at(struct profile *p, uint32_t stack, uint32_t owner, uint64_t time_ns)
{
	take_in(p, stack, owner, 1);
	assert_int_equal(profile_add_event(p, time_ns, profile_find_sample(p, stack, owner, PROFILE_NONE), 1), 0);
}

/* f, which calls itself, and g take turns, a slice each: f is on the stack as often as its outermost call. */
static void test_bursts_of_recursion(void **unused)
{
	struct profile *p = new_profile(), *even = new_profile();
	uint32_t owner = process(p, 1, "python3"), f = on(p, PROFILE_ROOT, "f", "", 1);
	uint32_t ff = on(p, f, "f", "", 1), g = on(p, PROFILE_ROOT, "g", "", 1);
	const struct profile_diff_entry *of_f, *of_g;
	struct profile_diff *d;

	(void)unused;
	for (unsigned i = 0; i < 3200; i++) {
		take_at(p, i / 100 % 2 ? i % 2 ? f : ff : g, owner, i);
		/* Without frames: in no slice. */
		take_at(p, PROFILE_ROOT, owner, i);
	}
	take_in(even, on(even, PROFILE_ROOT, "f", "", 1), process(even, 1, "python3"), 1600);
	take_in(even, on(even, PROFILE_ROOT, "g", "", 1), process(even, 1, "python3"), 1600);
	d = compared(p, even, &shares);
	of_f = function(d, "f", PROFILE_NO_LINE);
	of_g = function(d, "g", PROFILE_NO_LINE);
	assert_values(&of_f->total, 1600, 1600);
	/* By hand, as in test_profile_noise.c: 200. */
	assert_true(fabsf(of_f->total.design_effect - 200) < 0.01f);
	assert_true(fabsf(of_f->self.design_effect - 200) < 0.01f);
	assert_true(fabsf(of_g->total.design_effect - 200) < 0.01f);
	profile_diff_free(d);
	profile_free(p);
	profile_free(even);
}

/* f0 has a fifth of 10,000 samples, and then 20 % more: from 20.1 to 24.2 %. */
static void test_growth_is_found(void **unused)
{
	struct profile_diff_options options = shares;
	int found = 0, others = 0;
	uint64_t state = 4;

	(void)unused;
	options.tolerance = 0.02;
	for (int i = 0; i < 50; i++) {
		struct tree a = new_tree(), b = new_tree();
		const struct profile_diff_change *self;
		struct profile_diff *d;

		b.weights[0] *= 1.264;
		sample(&a, 10000, &state);
		sample(&b, 10000, &state);
		d = compared(a.p, b.p, &options);
		self = &function(d, "f0", PROFILE_NO_LINE)->self;
		found += self->verdict == PROFILE_DIFF_GREW && self->low > 0 && self->high > self->low;
		for (uint32_t f = 0; f < profile_frame_count(d->merged); f++)
			others += d->functions[f].self.verdict == PROFILE_DIFF_GREW && &d->functions[f].self != self;
		profile_diff_free(d);
		profile_free(a.p);
		profile_free(b.p);
	}
	print_message("20 %% more of 20 %%: found in %d of 50 pairs, with %d others\n", found, others);
	assert_in_range(found, 48, 50);
	/* Of what is called a change, 5 % may be none. */
	assert_in_range(others, 0, 3);
}

/* Without a tolerance, what is called a change has an interval without zero, and what is not has one with it. */
static void test_verdicts_agree_with_intervals(void **unused)
{
	struct tree a = new_tree(), b = new_tree();
	unsigned changed = 0, noise = 0;
	struct profile_diff *d;
	uint64_t state = 5;

	(void)unused;
	for (int i = 0; i < FUNCTIONS; i += 5)
		b.weights[i] *= i % 2 ? 0.5 : 3;
	b.weights[FUNCTIONS - 1] = 1;
	a.weights[1] = 0;
	b.weights[2] = 0;
	sample(&a, 20000, &state);
	sample(&b, 15000, &state);
	d = compared(a.p, b.p, &shares);
	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++) {
		const struct profile_diff_change *self = &d->functions[i].self;
		bool has_zero = self->low <= 0 && self->high >= 0;
		double difference = profile_diff_difference(d, self);

		assert_true(self->low <= difference && difference <= self->high);
		assert_true(has_zero == (self->verdict == PROFILE_DIFF_NOISE));
		if (!has_zero)
			assert_true((difference > 0) ==
				    (self->verdict == PROFILE_DIFF_GREW || self->verdict == PROFILE_DIFF_NEW));
		changed += !has_zero;
		noise += has_zero;
	}
	assert_true(changed > 5 && noise > 5);
	assert_int_equal(function(d, "f1", PROFILE_NO_LINE)->self.verdict, PROFILE_DIFF_NEW);
	assert_int_equal(function(d, "f2", PROFILE_NO_LINE)->self.verdict, PROFILE_DIFF_GONE);
	profile_diff_free(d);
	profile_free(a.p);
	profile_free(b.p);
}

/* Of a program whose f takes more, and g as much as before: what stands in `period_ns` and `seconds` is known. */
static struct profile *work(unsigned f, unsigned g, uint64_t period_ns, const char *seconds)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "python3"), root = on(p, PROFILE_ROOT, "main", "app.py", 1);

	take_in(p, on(p, root, "f", "app.py", 2), owner, f);
	take_in(p, on(p, root, "g", "app.py", 3), owner, g);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", period_ns}), 0);
	if (seconds)
		assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, seconds), 0);
	return p;
}

static void assert_verdicts(const struct profile *a, const struct profile *b, enum profile_diff_basis basis,
			    enum profile_diff_verdict f, enum profile_diff_verdict g)
{
	struct profile_diff_options options = shares;
	struct profile_diff *d;

	options.basis = basis;
	d = compared(a, b, &options);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->self.verdict, f);
	assert_int_equal(function(d, "g", PROFILE_NO_LINE)->self.verdict, g);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->total.verdict, f);
	profile_diff_free(d);
}

static void test_what_is_compared(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *b = work(3000, 2000, 1000000, "12.5");
	/* The same as a, but for half the samples, each of which stands for twice the time. */
	struct profile *slow = work(1000, 1000, 2000000, "10");

	(void)unused;
	/* A share of g: 50 %, then 40 %. Per second: 200 ms, then 160. In all: 2 s both times. */
	assert_verdicts(a, b, PROFILE_DIFF_SHARE, PROFILE_DIFF_GREW, PROFILE_DIFF_SHRANK);
	assert_verdicts(a, b, PROFILE_DIFF_RATE, PROFILE_DIFF_GREW, PROFILE_DIFF_SHRANK);
	assert_verdicts(a, b, PROFILE_DIFF_TIME, PROFILE_DIFF_GREW, PROFILE_DIFF_NOISE);
	for (enum profile_diff_basis basis = PROFILE_DIFF_SHARE; basis <= PROFILE_DIFF_TIME; basis++)
		assert_verdicts(a, slow, basis, PROFILE_DIFF_NOISE, PROFILE_DIFF_NOISE);
	profile_free(a);
	profile_free(b);
	profile_free(slow);
}

static void test_values_are_in_the_unit_of_the_basis(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *b = work(3000, 2000, 1000000, "12.5");
	/* Of f, by hand: 50 to 60 %; 200 to 240 ms per second; 2 to 3 s. */
	static const double want[] = {0.1, 0.04, 1};
	struct profile_diff_options options = shares;

	(void)unused;
	for (options.basis = PROFILE_DIFF_SHARE; options.basis <= PROFILE_DIFF_TIME; options.basis++) {
		struct profile_diff *d = compared(a, b, &options);
		double got = profile_diff_difference(d, &function(d, "f", PROFILE_NO_LINE)->self);

		assert_true(fabs(got - want[options.basis]) < 1e-9);
		profile_diff_free(d);
	}
	profile_free(a);
	profile_free(b);
}

static void test_tolerance(void **unused)
{
	/* 3 % more, of so many samples that chance is no reason. */
	struct profile *a = work(1000000, 9000000, 1000000, "10"), *b = work(1030000, 8970000, 1000000, "10");
	struct profile *more = work(1070000, 8930000, 1000000, "10");
	struct profile_diff_options options = shares;
	struct profile_diff *d;

	(void)unused;
	assert_verdicts(a, b, PROFILE_DIFF_SHARE, PROFILE_DIFF_GREW, PROFILE_DIFF_SHRANK);
	options.tolerance = 0.05;
	d = compared(a, b, &options);
	assert_int_equal(changes(d), 0);
	profile_diff_free(d);
	d = compared(a, more, &options);
	assert_int_equal(function(d, "f", PROFILE_NO_LINE)->self.verdict, PROFILE_DIFF_GREW);
	assert_int_equal(function(d, "g", PROFILE_NO_LINE)->self.verdict, PROFILE_DIFF_NOISE);
	profile_diff_free(d);
	profile_free(a);
	profile_free(b);
	profile_free(more);
}

static void assert_refused(const struct profile *a, const struct profile *b, enum profile_diff_basis basis,
			   const char *word, const char *other)
{
	struct profile_diff_options options = shares;
	struct profile_diff *d = NULL;
	struct error error = {0};

	options.basis = basis;
	assert_int_equal(profile_diff(a, b, &options, &d, &error), -EINVAL);
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
	assert_refused(a, bytes, PROFILE_DIFF_SHARE, "count", "bytes");
	assert_refused(bytes, a, PROFILE_DIFF_SHARE, "samples", "allocated");
	assert_refused(a, no_period, PROFILE_DIFF_TIME, "new", "CPU time");
	assert_refused(no_duration, a, PROFILE_DIFF_RATE, "old", "how long");
	assert_verdicts(no_duration, a, PROFILE_DIFF_TIME, PROFILE_DIFF_NOISE, PROFILE_DIFF_NOISE);
	profile_free(a);
	profile_free(bytes);
	profile_free(no_period);
	profile_free(no_duration);
}

static void test_nothing_to_judge_by(void **unused)
{
	struct profile *a = work(2000, 2000, 1000000, "10"), *empty = new_profile(), *b = work(1, 9999, 0, NULL);
	struct profile *rootless = new_profile();
	struct profile_diff *d;

	(void)unused;
	/* Without samples, or with none that has frames, on either side or both. */
	take_in(rootless, PROFILE_ROOT, process(rootless, 1, "python3"), 100);
	for (int i = 0; i < 4; i++) {
		d = compared(i & 1 ? a : empty, i & 2 ? rootless : empty, &shares);
		assert_false(d->judged);
		assert_int_equal(changes(d), 0);
		assert_int_equal(d->whole[PROFILE_DIFF_AFTER].total, 0);
		profile_diff_free(d);
	}
	/* Bytes are no draws: how far they go by chance is not known. */
	assert_int_equal(profile_set_measure(a, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	assert_int_equal(profile_set_measure(b, &(struct profile_measure){"allocated", "bytes", 0}), 0);
	d = compared(a, b, &shares);
	assert_false(d->judged);
	assert_int_equal(changes(d), 0);
	profile_diff_free(d);
	profile_free(a);
	profile_free(b);
	profile_free(empty);
	profile_free(rootless);
}

static char *written_diff(const struct profile_diff *d, const struct output_diff_options *options,
			  int (*write)(const struct profile_diff *, const struct output_diff_options *, FILE *))
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
	struct profile_diff *d = compared(a, b, &shares);
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
	profile_diff_free(d);
	profile_free(a);
	profile_free(b);
}

static void test_text_of_nothing(void **unused)
{
	struct profile *a = work(20, 30, 1000000, "10"), *empty = new_profile();
	struct profile_diff *d = compared(a, empty, &shares);
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
	profile_diff_free(d);
	d = compared(empty, empty, &shares);
	text = written_diff(d, &(struct output_diff_options){.rows = 40, .all = true}, output_diff_folded);
	assert_string_equal(text, "");
	free(text);
	profile_diff_free(d);
	profile_free(a);
	profile_free(empty);
}

/* Before is scaled to the total after; what is noise has the same number twice. */
static void test_folded(void **unused)
{
	struct profile *a = work(1000, 3000, 1000000, "10"), *b = work(4000, 4000, 1000000, "10");
	struct profile_diff *d;
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
	profile_diff_free(d);
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
		cmocka_unit_test(test_merges_by_function),
		cmocka_unit_test(test_merges_by_line),
		cmocka_unit_test(test_processes_are_matched_by_name),
		cmocka_unit_test(test_chance_is_rarely_called_a_change),
		cmocka_unit_test(test_bursts_are_chance),
		cmocka_unit_test(test_bursts_of_recursion),
		cmocka_unit_test(test_growth_is_found),
		cmocka_unit_test(test_verdicts_agree_with_intervals),
		cmocka_unit_test(test_what_is_compared),
		cmocka_unit_test(test_values_are_in_the_unit_of_the_basis),
		cmocka_unit_test(test_tolerance),
		cmocka_unit_test(test_what_cannot_be_compared),
		cmocka_unit_test(test_nothing_to_judge_by),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_of_nothing),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
