// SPDX-License-Identifier: Apache-2.0
/* Two profiles compared: what is merged, what is called a change, and how rarely chance is called one. */
#include <errno.h>
#include <math.h>

#include "profiles.h"
#include "profile_diff.h"

static const struct profile_diff_options shares = {.confidence = 0.95, .names = {"old", "new"}};

static struct profile_diff *compared(const struct profile *before, const struct profile *after,
				     const struct profile_diff_options *options)
{
	struct profile_diff *d = NULL;
	char why[512] = "";

	if (profile_diff(before, after, options, &d, why, sizeof(why)))
		fail_msg("%s", why);
	assert_string_equal(why, "");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merges_by_function),
		cmocka_unit_test(test_merges_by_line),
		cmocka_unit_test(test_processes_are_matched_by_name),
		cmocka_unit_test(test_chance_is_rarely_called_a_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
