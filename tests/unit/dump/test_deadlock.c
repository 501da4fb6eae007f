// SPDX-License-Identifier: Apache-2.0
/* Threads that wait for each other: in circles, and in rows as long as there are threads. */
#include "dump/deadlock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Threads 1, 2, ..., each of which has the lock of its number, and waits for none. */
static struct dump_process *make_threads(size_t count)
{
	struct dump_process *process = calloc(1, sizeof(*process));

	assert_non_null(process);
	process->threads = calloc(count, sizeof(*process->threads));
	assert_non_null(process->threads);
	process->count = count;
	for (size_t i = 0; i < count; i++) {
		process->threads[i].tid = process->threads[i].inside = (pid_t)i + 1;
		process->threads[i].locks.held[process->threads[i].locks.nr_held++] = i + 1;
	}
	return process;
}

static void wait_for(struct dump_process *process, size_t thread, uint64_t lock)
{
	process->threads[thread - 1].state.wait.state = PYBPF_STATE_LOCK;
	process->threads[thread - 1].locks.wanted = lock;
}

static void find(struct dump_process *process)
{
	assert_int_equal(dump_index_make(process), 0);
	assert_int_equal(dump_find_deadlocks(process, true), 0);
}

static void assert_circles(const struct dump_process *process, const char *want)
{
	char got[64] = "";

	for (size_t i = 0; i < process->count; i++)
		got[i] = (char)('0' + process->threads[i].circle);
	assert_string_equal(got, want);
}

/* Circles are numbered by their first threads, whoever waits for them. */
static void test_circles(void **unused)
{
	static const uint64_t wanted[] = {6, 0, 4, 3, 7, 7, 5, 8, 1};
	struct dump_process *process = make_threads(9);

	(void)unused;
	for (size_t i = 0; i < 9; i++) {
		if (wanted[i])
			wait_for(process, i + 1, wanted[i]);
	}
	find(process);
	/* 1 -> 6 -> 7 -> 5 -> 7; 3 <-> 4; 8 waits for itself; 9 -> 1. */
	assert_circles(process, "001120230");
	assert_ptr_equal(dump_find_holder(process, &process->threads[0]), &process->threads[5]);
	assert_null(dump_find_holder(process, &process->threads[1]));
	dump_free(process);
	free(process);
}

/* A lock that two have had, or that one names twice; a GIL; a lock that names its owner. */
static void test_holders(void **unused)
{
	struct dump_process *process = make_threads(5);
	struct dump_thread *threads = process->threads;

	(void)unused;
	wait_for(process, 1, 2);
	wait_for(process, 3, 4);
	threads[1].locks.held[threads[1].locks.nr_held++] = 2;
	threads[4].locks.held[threads[4].locks.nr_held++] = 4;
	find(process);
	assert_ptr_equal(dump_find_holder(process, &threads[0]), &threads[1]);
	assert_null(dump_find_holder(process, &threads[2]));
	threads[2].locks.owner = 77;
	threads[4].ident = 77;
	threads[0].state.wait.state = PYBPF_STATE_GIL;
	threads[0].gil = threads[3].gil = threads[4].gil = 99;
	threads[3].has_gil = true;
	find(process);
	assert_ptr_equal(dump_find_holder(process, &threads[2]), &threads[4]);
	assert_ptr_equal(dump_find_holder(process, &threads[0]), &threads[3]);
	dump_free(process);
	free(process);
}

/* Threads that ran go on: who waits in circles has to sleep still, and not all for a GIL, which goes round. */
static void test_circles_of_threads_that_run(void **unused)
{
	static const struct ps_row row = {.process = {.pid = 1 << 30}}; /* no process has this PID */
	struct dump_process *process = make_threads(4);

	(void)unused;
	process->row = &row;
	wait_for(process, 1, 2);
	wait_for(process, 2, 1);
	for (size_t i = 2; i < 4; i++) {
		process->threads[i].state.wait.state = PYBPF_STATE_GIL;
		process->threads[i].gil = 99;
	}
	process->threads[3].has_gil = true;
	assert_int_equal(dump_index_make(process), 0);
	assert_ptr_equal(dump_find_holder(process, &process->threads[2]), &process->threads[3]);
	assert_ptr_equal(dump_find_holder(process, &process->threads[3]), &process->threads[3]);
	assert_int_equal(dump_find_deadlocks(process, false), 0);
	assert_circles(process, "0000");
	/* A process that is stopped does not go on. */
	assert_int_equal(dump_find_deadlocks(process, true), 0);
	assert_int_equal(process->threads[0].circle, 1);
	dump_free(process);
	free(process);
}

static double time_row(size_t count)
{
	struct dump_process *process = make_threads(count);
	clock_t begin;
	double took;

	for (size_t i = 1; i < count; i++)
		wait_for(process, i, i + 1);
	begin = clock();
	for (int k = 0; k < 20; k++)
		find(process);
	took = (double)(clock() - begin) / CLOCKS_PER_SEC;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(process->threads[i].circle, 0);
	dump_free(process);
	free(process);
	return took;
}

/* Each waits for the next one: eight times the threads take some eight times the time, not 512. */
static void test_long_row(void **unused)
{
	(void)unused;
	assert_true(time_row(2400) < 40 * time_row(300));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circles),
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_circles_of_threads_that_run),
		cmocka_unit_test(test_long_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
