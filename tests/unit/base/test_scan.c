// SPDX-License-Identifier: Apache-2.0
/* Who descends from whom, in lists of processes that nobody has put in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/scan.h"

static void assert_below(const struct scan_kinship *kin, size_t kin_count, const uint32_t *pids, size_t count,
			 const uint32_t *want, size_t want_count)
{
	uint32_t *below;
	size_t found;

	assert_int_equal(scan_below_among(kin, kin_count, pids, count, &below, &found), 0);
	assert_int_equal(found, want_count);
	assert_memory_equal(below, want, found * sizeof(*want));
	free(below);
}

static void test_families(void **unused)
{
	/* 1 has 10, which has 30, which has 20; 40 has ended, and its child 41 was adopted by 1. */
	static const struct scan_kinship kin[] = {{1, 0}, {10, 1}, {20, 30}, {30, 10}, {41, 1}, {50, 40}};
	static const uint32_t of_10[] = {20, 30}, of_1[] = {10, 20, 30, 41}, of_30_and_1[] = {10, 20, 41};

	(void)unused;
	assert_below(kin, 6, &(uint32_t){10}, 1, of_10, 2);
	assert_below(kin, 6, &(uint32_t){1}, 1, of_1, 4);
	assert_below(kin, 6, (const uint32_t[]){30, 1}, 2, of_30_and_1, 3);
	/* A parent that is not listed, itself; a process without any. */
	assert_below(kin, 6, &(uint32_t){40}, 1, (const uint32_t[]){50}, 1);
	assert_below(kin, 6, &(uint32_t){20}, 1, NULL, 0);
	assert_below(NULL, 0, &(uint32_t){1}, 1, NULL, 0);
}

/* The list is not of one moment: PIDs that were used again meanwhile make circles. */
static void test_circles(void **unused)
{
	static const struct scan_kinship kin[] = {{2, 3}, {3, 2}, {4, 3}, {5, 5}, {6, 5}, {7, 2}};
	static const uint32_t of_3[] = {2, 4, 7};

	(void)unused;
	assert_below(kin, 6, &(uint32_t){9}, 1, NULL, 0);
	assert_below(kin, 6, &(uint32_t){5}, 1, (const uint32_t[]){6}, 1);
	assert_below(kin, 6, &(uint32_t){3}, 1, of_3, 3);
}

/* A chain of processes: each is the child of the next one in the list. Every second one is given. */
static double time_row(uint32_t count)
{
	struct scan_kinship *kin = calloc(count, sizeof(*kin));
	uint32_t *pids = calloc(count, sizeof(*pids)), *below;
	clock_t begin = clock();
	size_t found;

	assert_non_null(kin);
	assert_non_null(pids);
	for (uint32_t i = 0; i < count; i++) {
		kin[i] = (struct scan_kinship){i + 1, i + 2};
		pids[i] = count / 2 + i + 2;
	}
	for (int k = 0; k < 20; k++) {
		assert_int_equal(scan_below_among(kin, count, pids, count, &below, &found), 0);
		assert_int_equal(found, count / 2 + 1);
		free(below);
	}
	free(kin);
	free(pids);
	return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* Ten times the processes take some ten times the time, not 100. */
static void test_long_row(void **unused)
{
	(void)unused;
	assert_true(time_row(10000) < 40 * time_row(1000));
}

/* A child that has ended and not been waited for is in /proc, and none of the processes that there are. */
static void test_one_that_has_ended(void **unused)
{
	pid_t ended = fork(), there;
	uint32_t own = (uint32_t)getpid(), *below;
	siginfo_t info;
	size_t found;
	int ends[2];
	char byte;

	(void)unused;
	if (!ended)
		_exit(0);
	assert_int_equal(pipe(ends), 0);
	there = fork();
	if (!there) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	assert_true(ended > 0 && there > 0);
	assert_int_equal(waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(scan_find_below(&own, 1, &below, &found), 0);
	assert_int_equal(found, 1);
	assert_int_equal(below[0], there);
	free(below);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(waitpid(ended, NULL, 0), ended);
	assert_int_equal(waitpid(there, NULL, 0), there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_circles),
		cmocka_unit_test(test_long_row),
		cmocka_unit_test(test_one_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
