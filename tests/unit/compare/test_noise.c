// SPDX-License-Identifier: Apache-2.0
/* Intervals, probabilities, the choice among many and the design effect, held against published examples. */
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
	return (struct noise_side){count, total, 1 / total};
}

static struct noise_side rate(double count, double time)
{
	return (struct noise_side){count, INFINITY, 1 / time};
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

/* Newcombe, Statistics in Medicine 17, 1998, table II: method 10 at 95 %, to the four digits that are printed. */
static void test_newcombe(void **unused)
{
	static const struct {
		double a, of_a, b, of_b, low, high;
	} examples[] = {
		{56, 70, 48, 80, 0.0524, 0.3339}, {9, 10, 3, 10, 0.1705, 0.8090},  {6, 7, 2, 7, 0.0582, 0.8062},
		{5, 56, 0, 29, -0.0381, 0.1926},  {0, 10, 0, 20, -0.1611, 0.2775}, {0, 10, 0, 10, -0.2775, 0.2775},
		{10, 10, 0, 20, 0.6791, 1.0000},  {10, 10, 0, 10, 0.6075, 1.0000},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		/* His difference is the first less the second. */
		struct noise_side after = part(examples[i].a, examples[i].of_a);
		struct noise_side before = part(examples[i].b, examples[i].of_b);
		struct noise_interval got = noise_find_interval(&before, &after, 1, 1.959964);

		NEAR(got.low, examples[i].low, 6e-5);
		NEAR(got.high, examples[i].high, 6e-5);
	}
}

/*
 * Breast cancer after X-ray examination, 41 in 28,010 person-years against 15 in 19,017 (Rothman and Greenland, Modern
 * Epidemiology, 1998), and others; limits from statsmodels 0.14, confint_poisson_2indep(method="mover").
 */
static void test_rates(void **unused)
{
	static const struct {
		double a, in_a, b, in_b, low, high;
	} examples[] = {
		{41, 28010, 15, 19017, 3.398238e-05, 1.2823492e-03},
		{60, 51477.5, 30, 54308.7, 2.6193624e-04, 9.8641272e-04},
		{5, 10, 0, 20, 0.15513177, 1.17057568},
		{300, 30, 240, 29.5, 0.33282568, 3.40304319},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		struct noise_side after = rate(examples[i].a, examples[i].in_a);
		struct noise_side before = rate(examples[i].b, examples[i].in_b);
		struct noise_interval got = noise_find_interval(&before, &after, 1, 1.95996398);

		NEAR(got.low, examples[i].low, 1e-6 * examples[i].high);
		NEAR(got.high, examples[i].high, 1e-6 * examples[i].high);
	}
}

static void test_sides_may_be_exchanged(void **unused)
{
	struct noise_side a = part(30, 400), b = part(55, 380);
	struct noise_interval one = noise_find_interval(&a, &b, 1, 2), other = noise_find_interval(&b, &a, 1, 2);

	(void)unused;
	NEAR(one.low, -other.high, 1e-12);
	NEAR(one.high, -other.low, 1e-12);
	NEAR(noise_probability(&a, &b, 1, 0, 0), noise_probability(&b, &a, 1, 0, 0), 1e-12);
}

/* An interval at just that probability ends at zero. */
static void test_probability_agrees_with_interval(void **unused)
{
	static const double counts[][2] = {{30, 55}, {0, 9}, {12, 0}, {200, 290}, {379, 360}, {1, 3}};

	(void)unused;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		for (int effect = 1; effect < 10; effect += 4) {
			struct noise_side a = part(counts[i][0], 400), b = part(counts[i][1], 380);
			double p = noise_probability(&a, &b, effect, 0, 0);
			struct noise_interval got = noise_find_interval(&a, &b, effect, noise_deviate(p));

			assert_true(p > 0 && p <= 1);
			NEAR(fmin(fabs(got.low), fabs(got.high)), 0, 1e-9);
		}
	}
}

static void test_equal_sides_are_chance(void **unused)
{
	struct noise_side a = part(40, 400), none = part(0, 400), all = part(400, 400);

	(void)unused;
	NEAR(noise_probability(&a, &a, 1, 0, 0), 1, 1e-9);
	NEAR(noise_probability(&none, &none, 1, 0, 0), 1, 1e-9);
	NEAR(noise_probability(&all, &all, 1, 0, 0), 1, 1e-9);
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
	return noise_design_effect(&some, &all);
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

/* Of a load that itself comes and goes, an even part is even. */
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
	NEAR(noise_design_effect(&some, &all), 1, 0);
	/* As a number in some time it is not. */
	assert_true(noise_design_effect(&some, NULL) > 10);
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
		cmocka_unit_test(test_newcombe),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_sides_may_be_exchanged),
		cmocka_unit_test(test_probability_agrees_with_interval),
		cmocka_unit_test(test_equal_sides_are_chance),
		cmocka_unit_test(test_design_effect_divides),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_bursts_have_an_effect),
		cmocka_unit_test(test_load_is_no_burst_of_a_part),
		cmocka_unit_test(test_phases_are_no_bursts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
