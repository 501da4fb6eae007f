// SPDX-License-Identifier: Apache-2.0
/*
 * How rarely chance is named a change, and how surely a change is found: by simulated runs, which differ by a known
 * standard deviation and have the same draws at each test.
 */
#include <math.h>

#include "comparisons.h"

#define FUNCTIONS_MOST 20
#define PAIRS          300

/* Programs and runs to simulate. */
struct made {
	unsigned functions;
	unsigned before, after;         /* number of runs */
	double samples;                 /* of a run, about */
	double sigma;                   /* of every second function's weight, by run */
	double other_sigma;             /* of the rest */
	double unsteady;                /* of the weight of function 2; 0: as every second one's */
	double grown;                   /* after, the weight of function 1 is multiplied by it; 0: no change */
	double weights[FUNCTIONS_MOST]; /* the first 0: function i weighs 1 / (i + 1) */
};

static uint64_t state = 5;

/* 0 to 1: Marsaglia's xorshift64*, 2003 (Vigna, 2014). */
static double draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (double)((state * 0x2545f4914f6cdd1d >> 11) + 1) / (double)((1ull << 53) + 1);
}

static double draw_normal(void)
{
	return sqrt(-2 * log(draw())) * cos(2 * M_PI * draw());
}

/* A Poisson count: Knuth's product of draws, or for a large mean a rounded normal deviate. */
static unsigned draw_count(double mean)
{
	double product = 1;
	unsigned count = 0;

	if (mean > 100)
		return (unsigned)fmax(0, round(mean + sqrt(mean) * draw_normal()));
	while ((product *= draw()) > exp(-mean))
		count++;
	return count;
}

static double weight_of(const struct made *made, unsigned function)
{
	return made->weights[0] > 0 ? made->weights[function] : 1.0 / (function + 1);
}

static struct profile *make_run(const struct made *made, bool is_after)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3");
	double all = 0;

	for (unsigned i = 0; i < made->functions; i++)
		all += weight_of(made, i);
	for (unsigned i = 0; i < made->functions; i++) {
		double mean = made->samples * weight_of(made, i) / all;
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		if (i == 2 && made->unsteady > 0)
			mean *= exp(made->unsteady * draw_normal());
		else
			mean *= exp((i % 2 ? made->sigma : made->other_sigma) * draw_normal());
		if (is_after && made->grown > 0 && i == 1)
			mean *= made->grown;
		take_in(p, on(p, PROFILE_ROOT, name, "app.py", 1), owner, draw_count(mean));
	}
	return p;
}

/* What was said of many comparisons. */
struct said {
	unsigned any;      /* named something */
	unsigned right;    /* named f1 as grown */
	unsigned wrong;    /* named another function */
	unsigned likely;   /* called f1 likely to have changed */
	unsigned unlikely; /* likewise of another function */
	double other;      /* the mean change of f0, as far as it is judged */
	unsigned held;     /* f1's interval holds what is true */
	double noticeable; /* of f1, the mean */
};

static struct said simulate(const struct made *made, const struct diff_options *options)
{
	struct said said = {0};

	for (int n = 0; n < PAIRS; n++) {
		double true_change = made->grown > 0 ? made->grown - 1 : 0;
		const struct diff_function *f;
		struct profile *runs[2 * RUNS_MOST];
		struct diff *d;
		bool right;

		for (unsigned i = 0; i < made->before + made->after; i++)
			runs[i] = make_run(made, i >= made->before);
		d = compared_runs(runs, made->before, made->after, options);
		f = function(d, made->functions > 1 ? "f1" : "f0", PROFILE_NO_LINE);
		right = f->verdict == DIFF_GREW && made->grown > 0;
		said.any += changes(d) > 0;
		said.right += right;
		said.wrong += changes(d) > (right ? 1 : 0);
		said.likely += f->verdict == DIFF_LIKELY;
		said.unlikely += d->likely > (f->verdict == DIFF_LIKELY ? 1 : 0);
		said.other += function(d, "f0", PROFILE_NO_LINE)->change / PAIRS;
		said.held += f->low <= true_change && true_change <= f->high;
		said.noticeable += f->noticeable / PAIRS;
		diff_free(d);
		for (unsigned i = 0; i < made->before + made->after; i++)
			profile_free(runs[i]);
	}
	return said;
}

/* Without a change one is named in at most 5 of 100: of 300, 15 with a standard deviation of 3.8. */
static void test_chance_is_rarely_named(void **unused)
{
	static const struct made programs[] = {
		/* One run a side, and several, equal and uneven; the same program, and one that differs by 3 or 8 %. */
		{.functions = 20, .before = 1, .after = 1, .samples = 8000},
		{.functions = 20, .before = 1, .after = 1, .samples = 8000, .sigma = 0.03, .other_sigma = 0.03},
		{.functions = 20, .before = 1, .after = 1, .samples = 30000, .sigma = 0.08, .other_sigma = 0.08},
		{.functions = 20, .before = 2, .after = 2, .samples = 8000},
		{.functions = 20, .before = 2, .after = 2, .samples = 30000, .sigma = 0.08, .other_sigma = 0.08},
		{.functions = 20, .before = 3, .after = 3, .samples = 8000, .sigma = 0.03, .other_sigma = 0.03},
		{.functions = 20, .before = 3, .after = 3, .samples = 800, .sigma = 0.03, .other_sigma = 0.03},
		{.functions = 20, .before = 5, .after = 5, .samples = 30000, .sigma = 0.08, .other_sigma = 0.08},
		{.functions = 20, .before = 1, .after = 4, .samples = 8000, .sigma = 0.05, .other_sigma = 0.05},
		{.functions = 20, .before = 6, .after = 2, .samples = 8000, .sigma = 0.05, .other_sigma = 0.05},
		/* Half of the functions differ from run to run, the other half does not. */
		{.functions = 20, .before = 3, .after = 3, .samples = 8000, .sigma = 0.06, .other_sigma = 0.01},
		{.functions = 20, .before = 5, .after = 5, .samples = 8000, .sigma = 0.06, .other_sigma = 0.01},
		/* Few functions: of two, one is the other's mirror. */
		{.functions = 4, .before = 1, .after = 1, .samples = 8000, .sigma = 0.03, .other_sigma = 0.03},
		{.functions = 3, .before = 2, .after = 2, .samples = 8000, .sigma = 0.05, .other_sigma = 0.05},
		{.functions = 2, .before = 2, .after = 2, .samples = 8000, .sigma = 0.05, .other_sigma = 0.05},
		{.functions = 2, .before = 3, .after = 2, .samples = 30000, .sigma = 0.08, .other_sigma = 0.08},
		{.functions = 2, .before = 1, .after = 1, .samples = 8000, .sigma = 0.05, .other_sigma = 0.05},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		const struct made *made = &programs[i];
		struct said said = simulate(made, &shares);

		print_message("%u functions, %u and %u runs of %g samples, %g %%: named in %u of %d, f1 held in %u\n",
			      made->functions, made->before, made->after, made->samples, 100 * made->sigma, said.any,
			      PAIRS, said.held);
		assert_in_range(said.any, 0, 26);
		assert_in_range(said.held, 274, PAIRS);
	}
}

/* A quarter more, of a function of a seventh of the samples. */
static void test_growth_is_found(void **unused)
{
	static const struct {
		struct made made;
		unsigned least, most;
	} programs[] = {
		{{.functions = 20,
		  .before = 1,
		  .after = 1,
		  .samples = 30000,
		  .sigma = 0.03,
		  .other_sigma = 0.03,
		  .grown = 3},
		 280,
		 PAIRS},
		{{.functions = 20,
		  .before = 3,
		  .after = 3,
		  .samples = 30000,
		  .sigma = 0.03,
		  .other_sigma = 0.03,
		  .grown = 1.25},
		 285,
		 PAIRS},
		{{.functions = 20,
		  .before = 5,
		  .after = 5,
		  .samples = 30000,
		  .sigma = 0.01,
		  .other_sigma = 0.01,
		  .grown = 1.1},
		 270,
		 PAIRS},
		/* Runs differ by so much that it cannot be seen. */
		{{.functions = 20,
		  .before = 3,
		  .after = 3,
		  .samples = 30000,
		  .sigma = 0.2,
		  .other_sigma = 0.2,
		  .grown = 1.1},
		 0,
		 30},
		/* Of two functions: which of them changed cannot be told, but that one did. */
		{{.functions = 3, .before = 3, .after = 3, .samples = 30000, .grown = 1.4}, 270, PAIRS},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		struct said said = simulate(&programs[i].made, &shares);

		print_message("%g times: found in %u of %d, others in %u, interval holds it in %u\n",
			      programs[i].made.grown, said.right, PAIRS, said.wrong, said.held);
		assert_in_range(said.right, programs[i].least, programs[i].most);
		assert_in_range(said.wrong, 0, 30);
		assert_in_range(said.held, 274, PAIRS);
	}
}

/* A third of the program takes a quarter longer, so that all other shares shrink by a thirteenth: they are not named.
 */
static void test_others_are_not_named(void **unused)
{
	struct made made = {.functions = 12,
			    .before = 5,
			    .after = 5,
			    .samples = 100000,
			    .sigma = 0.005,
			    .other_sigma = 0.005,
			    .grown = 1.25};
	struct said said;

	(void)unused;
	made.weights[0] = made.weights[1] = 5;
	for (unsigned i = 2; i < made.functions; i++)
		made.weights[i] = 0.5;
	said = simulate(&made, &shares);
	print_message("found in %u of %d, others in %u\n", said.right, PAIRS, said.wrong);
	assert_in_range(said.right, 297, PAIRS);
	assert_in_range(said.wrong, 0, 26);
}

/*
 * Half of the program takes a quarter longer, and runs differ too much for it to be named each time: what the others
 * are measured against is not moved by it, as the sum of all samples would be, by an eighth.
 */
static void test_reference_is_not_moved(void **unused)
{
	struct made made = {.functions = 9,
			    .before = 3,
			    .after = 3,
			    .samples = 20000,
			    .sigma = 0.06,
			    .other_sigma = 0.06,
			    .grown = 1.2};
	struct said said;

	(void)unused;
	for (unsigned i = 0; i < made.functions; i++)
		made.weights[i] = i == 1 ? 8 : 1;
	said = simulate(&made, &shares);
	print_message("found in %u of %d, likely in %u, others in %u and likely in %u; f0 changed by %.1f %%\n",
		      said.right, PAIRS, said.likely, said.wrong, said.unlikely, 100 * said.other);
	assert_in_range(said.right + said.likely, 150, 290);
	assert_in_range(said.likely, 10, 120);
	assert_in_range(said.wrong, 0, 15);
	assert_in_range(said.unlikely, 0, 15);
	assert_true(fabs(said.other) < 0.03);
	/* One run a side: nothing is named, and the largest function is the one that stands apart. */
	made.before = made.after = 1;
	made.sigma = made.other_sigma = 0.01;
	made.grown = 1.4;
	said = simulate(&made, &shares);
	print_message("one run a side: found in %u, f0 changed by %.1f %%\n", said.right, 100 * said.other);
	assert_true(fabs(said.other) < 0.03);
}

/* A few functions, of which some differ far more from run to run than the others do: they are not named for that. */
static void test_unsteady_functions_are_not_named(void **unused)
{
	struct made made = {.functions = 6,
			    .before = 3,
			    .after = 3,
			    .samples = 10000,
			    .sigma = 0.01,
			    .other_sigma = 0.01,
			    .unsteady = 0.15};
	struct said said = simulate(&made, &shares);

	(void)unused;
	print_message("named in %u of %d\n", said.any, PAIRS);
	assert_in_range(said.any, 0, 26);
	/* More that are steady, and fewer runs that show that one is not. */
	made.functions = 13;
	made.before = made.after = 2;
	made.unsteady = 0.6;
	said = simulate(&made, &shares);
	print_message("two runs a side: named in %u of %d\n", said.any, PAIRS);
	assert_in_range(said.any, 0, 26);
}

/* The smallest noticeable change is named in about 80 of 100. */
static void test_what_is_noticeable_is_noticed(void **unused)
{
	struct made made = {
		.functions = 20, .before = 3, .after = 3, .samples = 10000, .sigma = 0.03, .other_sigma = 0.03};
	struct said said;

	(void)unused;
	for (unsigned runs = 2; runs <= 6; runs += 2) {
		made.before = made.after = runs;
		made.grown = 0;
		made.grown = 1 + simulate(&made, &shares).noticeable;
		said = simulate(&made, &shares);
		print_message("%u runs: %.1f %% more is found in %u of %d\n", runs, 100 * (made.grown - 1), said.right,
			      PAIRS);
		assert_in_range(said.right, 200, 290);
	}
}

static void take_at(struct profile *p, uint32_t stack, uint32_t owner, uint64_t time_ns)
{
	take_in(p, stack, owner, 1);
	assert_int_equal(profile_add_event(p, time_ns, profile_find_sample(p, stack, owner, PROFILE_NONE), 1), 0);
}

/* A run of 6,000 samples with times, in which the same function is met ten times in a row on average. */
static struct profile *make_bursts(bool by_chance)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), stacks[FUNCTIONS_MOST];
	unsigned at = 0;

	for (unsigned i = 0; i < FUNCTIONS_MOST; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		stacks[i] = on(p, PROFILE_ROOT, name, "app.py", 1);
	}
	for (unsigned i = 0; i < 6000; i++) {
		if (by_chance && draw() < 0.1)
			at = (unsigned)(draw() * FUNCTIONS_MOST) % FUNCTIONS_MOST;
		else if (!by_chance && i % 300 == 0)
			at = i / 300;
		/* In phases, which are the same in each run, every second sample is any function's. */
		take_at(p, stacks[by_chance || i % 2 ? at : (unsigned)(draw() * FUNCTIONS_MOST) % FUNCTIONS_MOST],
			owner, i * 1000000ull);
	}
	return p;
}

static void test_bursts_are_chance(void **unused)
{
	for (unsigned runs = 1; runs <= 3; runs += 2) {
		unsigned named = 0;

		for (int i = 0; i < 100; i++) {
			struct profile *made[6];
			struct diff *d;

			for (unsigned r = 0; r < 2 * runs; r++)
				made[r] = make_bursts(true);
			d = compared_runs(made, runs, runs, &shares);
			named += changes(d) > 0;
			diff_free(d);
			for (unsigned r = 0; r < 2 * runs; r++)
				profile_free(made[r]);
		}
		print_message("bursts, %u runs: named in %u of 100\n", runs, named);
		assert_in_range(named, 0, 12);
	}
	(void)unused;
}

/* Within a run phases look like bursts. Three runs show that they are not. */
static void test_phases_are_no_chance(void **unused)
{
	struct profile *made[6];
	const struct diff_function *f;
	struct diff *d;

	(void)unused;
	for (unsigned r = 0; r < 6; r++)
		made[r] = make_bursts(false);
	d = compared_runs(made, 3, 3, &shares);
	f = function(d, "f7", PROFILE_NO_LINE);
	assert_true(f->bursts > 4);
	assert_true(f->noticeable > 0.1 && f->noticeable < 0.45);
	diff_free(d);
	for (unsigned r = 0; r < 6; r++)
		profile_free(made[r]);
}

/* Verdict and interval agree, and nothing shrinks by more than all of it. */
static void test_verdicts_agree_with_intervals(void **unused)
{
	struct made before = {.functions = 16, .samples = 20000}, after = before;
	struct profile *runs[6];
	unsigned changed = 0, noise = 0;
	struct diff *d;

	(void)unused;
	for (unsigned i = 0; i < 16; i++)
		before.weights[i] = after.weights[i] = 1;
	before.weights[3] = after.weights[5] = 1e-9;
	after.weights[7] = 3;
	after.weights[9] = 0.4;
	for (unsigned r = 0; r < 6; r++)
		runs[r] = make_run(r < 3 ? &before : &after, false);
	d = compared_runs(runs, 3, 3, &shares);
	for (uint32_t i = 0; i < profile_frame_count(d->merged); i++) {
		const struct diff_function *f = &d->functions[i];
		bool is_outside = f->low > 0 || f->high < 0;

		assert_true(f->low >= -1 && f->low <= f->change && f->change <= f->high);
		assert_true(is_outside == diff_is_change(f));
		changed += is_outside;
		noise += !is_outside;
	}
	assert_int_equal(changed, 4);
	assert_int_equal(noise, 12);
	assert_int_equal(function(d, "f3", PROFILE_NO_LINE)->verdict, DIFF_NEW);
	assert_int_equal(function(d, "f5", PROFILE_NO_LINE)->verdict, DIFF_GONE);
	assert_int_equal(function(d, "f7", PROFILE_NO_LINE)->verdict, DIFF_GREW);
	assert_int_equal(function(d, "f9", PROFILE_NO_LINE)->verdict, DIFF_SHRANK);
	/* All against the twelve that are as before. */
	assert_true(fabs(function(d, "f7", PROFILE_NO_LINE)->change - 2) < 0.2);
	assert_true(fabs(function(d, "f9", PROFILE_NO_LINE)->change + 0.6) < 0.1);
	assert_true(fabs(function(d, "f0", PROFILE_NO_LINE)->change) < 0.1);
	assert_true(isinf(function(d, "f3", PROFILE_NO_LINE)->high));
	diff_free(d);
	for (unsigned r = 0; r < 6; r++)
		profile_free(runs[r]);
}

static void test_one_function_only(void **unused)
{
	struct made made = {.functions = 1, .samples = 5000};
	struct profile *runs[4];
	struct diff *d;

	(void)unused;
	for (unsigned r = 0; r < 4; r++)
		runs[r] = make_run(&made, false);
	for (unsigned n = 1; n <= 2; n++) {
		d = compared_runs(runs, n, n, &shares);
		assert_int_equal(d->state, DIFF_FEW_FUNCTIONS);
		assert_int_equal(function(d, "f0", PROFILE_NO_LINE)->verdict, DIFF_UNJUDGED);
		diff_free(d);
	}
	for (unsigned r = 0; r < 4; r++)
		profile_free(runs[r]);
}

static void test_huge_counts(void **unused)
{
	struct profile *runs[6];
	const struct diff_function *f;
	struct diff *d;

	(void)unused;
	for (unsigned r = 0; r < 6; r++) {
		struct made made = {.functions = 20, .samples = 1e9, .sigma = 0.02, .other_sigma = 0.02};

		made.grown = 2;
		runs[r] = make_run(&made, r >= 3);
	}
	d = compared_runs(runs, 3, 3, &shares);
	f = function(d, "f1", PROFILE_NO_LINE);
	assert_int_equal(f->verdict, DIFF_GREW);
	assert_int_equal(changes(d), 1);
	/* Sampling is exact here: what is left is what runs differ by. */
	assert_true(d->spread > 0.01 && d->spread < 0.04);
	assert_true(f->low > 0.7 && f->high < 1.4);
	diff_free(d);
	for (unsigned r = 0; r < 6; r++)
		profile_free(runs[r]);
}

/* f, which calls itself, and g take turns, a slice each: f is on the stack as often as its outermost call. */
static void test_bursts_of_recursion(void **unused)
{
	struct profile *p = new_profile(), *even = new_profile();
	uint32_t owner = process(p, 1, "python3"), f = on(p, PROFILE_ROOT, "f", "", 1);
	uint32_t ff = on(p, f, "f", "", 1), g = on(p, PROFILE_ROOT, "g", "", 1);
	const struct diff_function *of_f, *of_g;
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
	assert_values(of_f->total, 1600, 1600);
	assert_values(of_f->self, 1600, 1600);
	/* By hand, as in test_noise.c: 200 in one of both runs, which have as many samples, and 1 in the other. */
	assert_true(fabs(of_f->bursts - 100.5) < 0.01);
	assert_true(fabs(of_g->bursts - 100.5) < 0.01);
	diff_free(d);
	profile_free(p);
	profile_free(even);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chance_is_rarely_named), cmocka_unit_test(test_growth_is_found),
		cmocka_unit_test(test_reference_is_not_moved), cmocka_unit_test(test_unsteady_functions_are_not_named),
		cmocka_unit_test(test_others_are_not_named),   cmocka_unit_test(test_what_is_noticeable_is_noticed),
		cmocka_unit_test(test_bursts_are_chance),      cmocka_unit_test(test_phases_are_no_chance),
		cmocka_unit_test(test_bursts_of_recursion),    cmocka_unit_test(test_verdicts_agree_with_intervals),
		cmocka_unit_test(test_one_function_only),      cmocka_unit_test(test_huge_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
