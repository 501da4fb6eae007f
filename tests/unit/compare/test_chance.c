// SPDX-License-Identifier: Apache-2.0
/* How rarely chance is called a change, and how surely a change is found. */
#include <math.h>

#include "comparisons.h"

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
static void count_false(const struct diff_options *options, unsigned samples_a, unsigned samples_b, int pairs,
			uint64_t state, int *functions, int *stacks)
{
	*functions = *stacks = 0;
	for (int i = 0; i < pairs; i++) {
		struct tree a = new_tree(), b = new_tree();
		struct diff *d;

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
		diff_free(d);
		profile_free(a.p);
		profile_free(b.p);
	}
}

static void test_chance_is_rarely_called_a_change(void **unused)
{
	struct diff_options rates = shares;
	int functions, stacks;

	(void)unused;
	/* At 95 %, 10 of 200 pairs may have one. */
	count_false(&shares, 2000, 3000, 200, 1, &functions, &stacks);
	print_message("shares: functions changed in %d, stacks in %d of 200 pairs\n", functions, stacks);
	assert_in_range(functions, 0, 10);
	assert_in_range(stacks, 0, 10);
	rates.basis = DIFF_RATE;
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
		const struct profile_frame *f = profile_frame_at(p, i);

		assert_int_equal(profile_add_frame(copy, f->kind, profile_string(p, f->name),
						   profile_string(p, f->file), f->line, f->first_line),
				 i);
	}
	for (uint32_t i = 1; i < profile_stack_count(p); i++)
		assert_int_equal(profile_add_stack(copy, profile_stack_at(p, i)->parent, profile_stack_at(p, i)->frame),
				 i);
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
		struct diff *d;

		sample_bursts(&a, 6000, 10, &state);
		sample_bursts(&b, 6000, 10, &state);
		d = compared(a.p, b.p, &shares);
		with += changes(d) > 0;
		diff_free(d);
		a_counts = without_times(a.p);
		b_counts = without_times(b.p);
		d = compared(a_counts, b_counts, &shares);
		without += changes(d) > 0;
		diff_free(d);
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
	const struct diff_entry *of_f, *of_g;
	struct diff *d;

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
	diff_free(d);
	profile_free(p);
	profile_free(even);
}

/* f0 has a fifth of 10,000 samples, and then 20 % more: from 20.1 to 24.2 %. */
static void test_growth_is_found(void **unused)
{
	struct diff_options options = shares;
	int found = 0, others = 0;
	uint64_t state = 4;

	(void)unused;
	options.tolerance = 0.02;
	for (int i = 0; i < 50; i++) {
		struct tree a = new_tree(), b = new_tree();
		const struct diff_change *self;
		struct diff *d;

		b.weights[0] *= 1.264;
		sample(&a, 10000, &state);
		sample(&b, 10000, &state);
		d = compared(a.p, b.p, &options);
		self = &function(d, "f0", PROFILE_NO_LINE)->self;
		found += self->verdict == DIFF_GREW && self->low > 0 && self->high > self->low;
		for (uint32_t f = 0; f < profile_frame_count(d->merged); f++)
			others += d->functions[f].self.verdict == DIFF_GREW && &d->functions[f].self != self;
		diff_free(d);
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
	struct diff *d;
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
		const struct diff_change *self = &d->functions[i].self;
		bool has_zero = self->low <= 0 && self->high >= 0;
		double difference = diff_difference(d, self);

		assert_true(self->low <= difference && difference <= self->high);
		assert_true(has_zero == (self->verdict == DIFF_NOISE));
		if (!has_zero)
			assert_true((difference > 0) == (self->verdict == DIFF_GREW || self->verdict == DIFF_NEW));
		changed += !has_zero;
		noise += has_zero;
	}
	assert_true(changed > 5 && noise > 5);
	assert_int_equal(function(d, "f1", PROFILE_NO_LINE)->self.verdict, DIFF_NEW);
	assert_int_equal(function(d, "f2", PROFILE_NO_LINE)->self.verdict, DIFF_GONE);
	diff_free(d);
	profile_free(a.p);
	profile_free(b.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chance_is_rarely_called_a_change),
		cmocka_unit_test(test_bursts_are_chance),
		cmocka_unit_test(test_bursts_of_recursion),
		cmocka_unit_test(test_growth_is_found),
		cmocka_unit_test(test_verdicts_agree_with_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
