// SPDX-License-Identifier: Apache-2.0
/* Intervals, deviates, the choice among many and bursts, held against published examples and against draws. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "compare/noise.h"

#define NEAR(got, want, distance) assert_true(fabs((got) - (want)) <= (distance))

static struct noise_side part(double count, double total)
{
	return (struct noise_side){count, total};
}

/* Probabilities of a normal distribution's tails, from any table. */
static void test_deviates(void **unused)
{
	(void)unused;
	NEAR(noise_deviate(0.3173105), 1, 1e-6);
	NEAR(noise_deviate(0.05), 1.959964, 1e-6);
	NEAR(noise_deviate(0.01), 2.575829, 1e-6);
	NEAR(noise_deviate(1e-9), 6.109410, 1e-6);
	assert_true(noise_deviate(1) < 1e-6);
}

/* Two-sided quantiles of Student's distribution, from any table. */
static void test_student(void **unused)
{
	static const struct {
		double probability, freedom, quantile;
	} table[] = {
		{0.05, 10, 2.228}, {0.01, 10, 3.169},  {0.05, 4, 2.776},  {0.01, 4, 4.604},
		{0.05, 2, 4.303},  {0.001, 12, 4.318}, {0.05, 60, 2.000}, {0.001, 30, 3.646},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		double normal = noise_deviate(table[i].probability);
		double student = noise_to_student(normal, table[i].freedom);

		/* Wallace errs on the safe side. */
		assert_true(student > 0.999 * table[i].quantile);
		assert_true(student < (table[i].freedom < 4 ? 1.05 : 1.02) * table[i].quantile);
		NEAR(noise_from_student(student, table[i].freedom), normal, 1e-9);
	}
	NEAR(noise_probability(1.959964), 0.05, 1e-7);
}

/* Wilson's limits of 81 of 263, 0.2553 and 0.3662 (Newcombe, Statistics in Medicine 17, 1998, p. 857, table I). */
static void test_wilson(void **unused)
{
	/* The other side, even and of so many samples, has odds of 1 for sure. */
	struct noise_side sure = part(5e11, 1e12), some = part(81, 263);
	struct noise_interval got = noise_find_interval(&sure, &some, 1, 1.959964);

	(void)unused;
	NEAR(got.low, 0.2553 / 0.7447 - 1, 2e-4);
	NEAR(got.high, 0.3662 / 0.6338 - 1, 2e-4);
	NEAR(noise_find_change(&sure, &some), 81.0 / 182 - 1, 1e-9);
}

/* The same draws at each run: Marsaglia's xorshift64*, 2003 (Vigna, 2014). */
static double draw(void)
{
	static uint64_t state = 9;

	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (double)(state * 0x2545f4914f6cdd1d >> 11) / (double)(1ull << 53);
}

static double binomial(unsigned total, double probability)
{
	double count = 0;

	for (unsigned i = 0; i < total; i++)
		count += draw() < probability;
	return count;
}

/* The interval of 95 % holds a known change in 95 of 100 draws, down to small counts. */
static void test_intervals_hold_what_is_true(void **unused)
{
	static const struct {
		double before, after;
	} parts[] = {{0.3, 0.3}, {0.3, 0.35}, {0.02, 0.05}, {0.01, 0.01}, {0.9, 0.8}};

	(void)unused;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		double true_change =
			parts[i].after / (1 - parts[i].after) / (parts[i].before / (1 - parts[i].before)) - 1;
		int held = 0;

		for (int n = 0; n < 2000; n++) {
			struct noise_side a = part(binomial(300, parts[i].before), 300);
			struct noise_side b = part(binomial(200, parts[i].after), 200);
			struct noise_interval got = noise_find_interval(&a, &b, 1, 1.959964);

			assert_true(got.low >= -1 && got.low <= got.high);
			held += got.low <= true_change && true_change <= got.high;
		}
		/* 1,900 with a standard deviation of 10; small counts have somewhat more. */
		assert_in_range(held, 1865, 1975);
	}
}

/* Nothing on one side, all on one side: no end is below -1, and each is a number. */
static void test_ends(void **unused)
{
	static const double counts[] = {0, 1, 50, 399, 400};

	(void)unused;
	for (int i = 0; i < 25; i++) {
		struct noise_side a = part(counts[i / 5], 400), b = part(counts[i % 5], 400);
		struct noise_interval got = noise_find_interval(&a, &b, 3, 4);
		double change = noise_find_change(&a, &b), deviate = noise_find_deviate(&a, &b, 3);

		assert_true(got.low >= -1 && got.low <= change && change <= got.high);
		assert_true(deviate >= 0 && isfinite(deviate));
	}
	assert_true(isinf(noise_find_change(&(struct noise_side){0, 400}, &(struct noise_side){9, 400})));
	NEAR(noise_find_change(&(struct noise_side){9, 400}, &(struct noise_side){0, 400}), -1, 0);
}

/* Turned round, the change is the reciprocal, and it is as sure. */
static void test_sides_may_be_exchanged(void **unused)
{
	struct noise_side a = part(30, 400), b = part(55, 380);
	struct noise_interval one = noise_find_interval(&a, &b, 1, 2), other = noise_find_interval(&b, &a, 1, 2);

	(void)unused;
	NEAR((1 + one.low) * (1 + other.high), 1, 1e-12);
	NEAR(noise_find_deviate(&a, &b, 1), noise_find_deviate(&b, &a, 1), 1e-6);
}

/* An interval at just that deviate ends at no change. */
static void test_deviate_agrees_with_interval(void **unused)
{
	static const double counts[][2] = {{30, 55}, {0, 9}, {12, 0}, {200, 290}, {379, 360}, {1, 3}};

	(void)unused;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		for (int effect = 1; effect < 10; effect += 4) {
			struct noise_side a = part(counts[i][0], 400), b = part(counts[i][1], 380);
			double deviate = noise_find_deviate(&a, &b, effect);
			struct noise_interval got = noise_find_interval(&a, &b, effect, deviate);

			assert_true(deviate > 0);
			NEAR(fmin(fabs(got.low), fabs(got.high)), 0, 1e-6);
		}
	}
}

static void test_equal_sides_do_not_differ(void **unused)
{
	struct noise_side a = part(40, 400), none = part(0, 400), all = part(400, 400);

	(void)unused;
	NEAR(noise_find_deviate(&a, &a, 1), 0, 1e-9);
	NEAR(noise_find_deviate(&none, &none, 1), 0, 1e-9);
	NEAR(noise_find_deviate(&all, &all, 1), 0, 1e-9);
}

/* Counts of which a double still knows each one. */
static void test_huge_counts(void **unused)
{
	struct noise_side a = part(1e15, 9e15), b = part(1.001e15, 9e15), same = part(1e15 + 1e6, 9e15);

	(void)unused;
	assert_true(noise_find_deviate(&a, &b, 1) > 100);
	assert_true(noise_find_deviate(&a, &same, 1) < 1);
	/* What bursts and runs differ by counts all the same. */
	assert_true(noise_find_deviate(&a, &b, 1e12) < 2);
}

/* Four times the variance: as with a quarter of the samples. */
static void test_design_effect_divides(void **unused)
{
	struct noise_side a = part(120, 1600), b = part(220, 1520), a4 = part(30, 400), b4 = part(55, 380);
	struct noise_interval wide = noise_find_interval(&a, &b, 4, 2), few = noise_find_interval(&a4, &b4, 1, 2);

	(void)unused;
	NEAR(wide.low, few.low, 1e-12);
	NEAR(wide.high, few.high, 1e-12);
}

/* Benjamini and Hochberg, 1995, section 4.1: fifteen probabilities, of which four are chosen at 0.05. */
static void test_choice(void **unused)
{
	double p[] = {0.4262, 0.0001, 0.0019, 0.0004, 0.0095, 0.0201, 0.0278, 0.0298,
		      0.0344, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590, 1.0000};
	double limit, none[] = {0.2, 0.04, 0.9};

	(void)unused;
	assert_int_equal(noise_choose(p, 15, 0.05, &limit), 4);
	NEAR(limit, 0.0095, 0);
	assert_int_equal(noise_choose(none, 3, 0.05, &limit), 0);
	assert_true(limit < 0);
	assert_int_equal(noise_choose(none, 0, 0.05, &limit), 0);
	assert_true(limit < 0);
}

/* A total of 100 in each slice, of which the part has as many as `counts` says, again and again. */
static double effect_of(const double *counts, size_t count, double each)
{
	struct noise_series all = {.current = 0}, some = {.current = 0};

	for (unsigned slice = 0; slice < NOISE_SLICES; slice++) {
		all.current = each;
		some.current = counts[slice % count];
		noise_end_slice(&all, &all, slice);
		noise_end_slice(&some, &all, slice);
	}
	return noise_find_bursts(&some, &all);
}

/*
 * By hand: slices of 0 and 100 in turn. 31 changes of 100 squared, halved, for 32 of 31 slices: 160,000; by independent
 * draws, 1,600 of 3,200 would have 800.
 */
static void test_bursts_have_an_effect(void **unused)
{
	static const double even[] = {50}, bursts[] = {0, 100}, none[] = {0}, full[] = {100};

	(void)unused;
	NEAR(effect_of(bursts, 2, 100), 200, 1e-9);
	NEAR(effect_of(even, 1, 100), 1, 0);
	NEAR(effect_of(none, 1, 100), 1, 0);
	NEAR(effect_of(full, 1, 100), 1, 0);
}

/* An even part of a load that comes and goes is even. */
static void test_load_is_no_burst_of_a_part(void **unused)
{
	struct noise_series all = {.current = 0}, some = {.current = 0};

	(void)unused;
	for (unsigned slice = 0; slice < NOISE_SLICES; slice++) {
		all.current = slice % 3 ? 100 : 10;
		some.current = all.current / 2;
		noise_end_slice(&all, &all, slice);
		noise_end_slice(&some, &all, slice);
	}
	NEAR(noise_find_bursts(&some, &all), 1, 0);
}

/* Two phases of the program are no bursts: one change among 30 of none. By hand: 10,000 / 2 * 32 / 31 / 800. */
static void test_phases_are_no_bursts(void **unused)
{
	double counts[NOISE_SLICES] = {0};

	(void)unused;
	for (unsigned slice = NOISE_SLICES / 2; slice < NOISE_SLICES; slice++)
		counts[slice] = 100;
	NEAR(effect_of(counts, NOISE_SLICES, 100), 6.4516, 1e-4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deviates),
		cmocka_unit_test(test_student),
		cmocka_unit_test(test_wilson),
		cmocka_unit_test(test_intervals_hold_what_is_true),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_sides_may_be_exchanged),
		cmocka_unit_test(test_deviate_agrees_with_interval),
		cmocka_unit_test(test_equal_sides_do_not_differ),
		cmocka_unit_test(test_huge_counts),
		cmocka_unit_test(test_design_effect_divides),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_bursts_have_an_effect),
		cmocka_unit_test(test_load_is_no_burst_of_a_part),
		cmocka_unit_test(test_phases_are_no_bursts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
