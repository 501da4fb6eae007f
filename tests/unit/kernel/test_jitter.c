// SPDX-License-Identifier: Apache-2.0
/* The rate of each stretch of a run: close to the wanted one, on average the wanted one, and never in step with a
 * program. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>

#include "kernel/jitter.h"

#define RUNS 2000

/*
 * Returns how far the number of ticks of so many stretches, each of which lasts for late times its time, is from the
 * wanted one, as a share of it: the most of many runs.
 */
static double worst(double freq, int stretches, double late)
{
	double most = 0;

	for (int run = 0; run < RUNS; run++) {
		struct kernel_jitter jitter = {0};
		double now = 100, ticks = 0;

		for (int i = 0; i < stretches; i++) {
			double seconds, rate = kernel_draw_rate(&jitter, freq, now, &seconds);

			/* Only the first of a pair is late. */
			seconds *= i % 2 ? 1 : late;
			ticks += rate * seconds - 0.5;
			now += seconds;
		}
		most = fmax(most, fabs(ticks / (freq * (now - 100)) - 1));
	}
	return most;
}

static void test_pairs_have_the_rate(void **state)
{
	(void)state;
	for (int pairs = 1; pairs < 4; pairs++) {
		assert_true(worst(999, 2 * pairs, 1) < 1e-9);
		/* The second stretch may have to be slower by more than is allowed. */
		assert_true(worst(99, 2 * pairs, 1) < 0.01);
		assert_true(worst(19, 2 * pairs, 1) < 0.015);
	}
}

/* pybpf was kept from a CPU: half a tick more or less is not made up for. */
static void test_a_stretch_that_lasted_longer(void **state)
{
	(void)state;
	assert_true(worst(999, 2, 1.5) < 0.001);
	assert_true(worst(999, 2, 4) < 0.002);
}

static void test_a_short_run(void **state)
{
	(void)state;
	/* In whatever stretch the program ran: 4 periods of some 750. */
	assert_true(worst(999, 1, 1) < 0.006);
	assert_true(worst(99, 1, 1) < 0.051);
}

/* A program whose cycle is the period is met at each of its moments in most stretches. */
static void test_no_step_is_kept(void **state)
{
	static const double rates[] = {19, 99, 100, 999, 5000};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct kernel_jitter jitter = {0};
		double now = 0;
		int whole = 0;

		for (int n = 0; n < RUNS; n++) {
			double seconds, rate = kernel_draw_rate(&jitter, rates[i], now, &seconds);

			now += seconds;
			whole += fabs((rate - rates[i]) * seconds - 0.5) >= 1;
		}
		assert_true(whole > 0.6 * RUNS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs_have_the_rate),
		cmocka_unit_test(test_a_stretch_that_lasted_longer),
		cmocka_unit_test(test_a_short_run),
		cmocka_unit_test(test_no_step_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
