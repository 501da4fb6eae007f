// SPDX-License-Identifier: Apache-2.0
/* Sentences on threads that wait for each other: what is proved of them, and no more. */
#include "dump/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/deadlock.h"

#define THREADS 9

/* Threads 1, 2, ... "t1", "t2", ..., each with the lock of its number, in function f of /app/x.py, line 12. */
static struct dump_process *make_threads(void)
{
	struct dump_process *process = calloc(1, sizeof(*process));
	uint32_t stack;

	assert_non_null(process);
	process->stacks = profile_new();
	process->threads = calloc(THREADS, sizeof(*process->threads));
	assert_true(process->threads && process->stacks);
	stack = profile_add_stack(process->stacks, PROFILE_ROOT,
				  profile_add_frame(process->stacks, PROFILE_PYTHON, "f", "/app/x.py", 12, 10));
	process->count = THREADS;
	for (int i = 0; i < THREADS; i++) {
		struct dump_thread *thread = &process->threads[i];

		thread->tid = thread->inside = i + 1;
		assert_true(asprintf(&thread->name, "t%d", i + 1) > 0);
		thread->stack = stack;
		thread->locks.held[thread->locks.nr_held++] = (uint64_t)i + 1;
	}
	return process;
}

static void wait_for(struct dump_process *process, int thread, uint64_t lock)
{
	process->threads[thread - 1].state.wait.state = PYBPF_STATE_LOCK;
	process->threads[thread - 1].locks.wanted = lock;
}

/* Frees the process. */
static void assert_text(struct dump_process *process, bool stopped, const char *want)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(dump_index_make(process), 0);
	assert_int_equal(dump_find_deadlocks(process, stopped), 0);
	dump_find_held_up(process, stopped);
	dump_print_findings(process, out);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
	dump_free(process);
	free(process);
}

static void test_nothing(void **unused)
{
	(void)unused;
	assert_text(make_threads(), true, "");
}

static void test_who_is_waited_for(void **unused)
{
	struct dump_process *process = make_threads();

	(void)unused;
	/* 3, 4 and 5 wait for 2, which waits for 1; 6 for itself; 7 for 6; 8 for a lock of nobody. */
	wait_for(process, 2, 1);
	for (int i = 3; i <= 5; i++)
		wait_for(process, i, 2);
	wait_for(process, 6, 6);
	wait_for(process, 7, 6);
	wait_for(process, 8, 99);
	process->threads[0].state.wait.state = PYBPF_STATE_SLEEP;
	assert_text(process, true,
		    "Deadlock: thread 6 \"t6\" waits for a lock that it has itself\n"
		    "3 threads wait for a lock that thread 2 \"t2\" has, which waits for a lock that thread 1 "
		    "\"t1\" has\n"
		    "Thread 2 \"t2\" waits for a lock that thread 1 \"t1\" has, which sleeps in f (x.py:12)\n"
		    "Thread 7 \"t7\" waits for a lock that thread 6 \"t6\" has, which is part of a deadlock\n");
}

static void test_what_is_not_certain_is_not_told(void **unused)
{
	struct dump_process *process = make_threads();

	(void)unused;
	/* Thread 1 and what 4 waits for moved while they were read; 5 may have given its lock back. */
	wait_for(process, 2, 1);
	process->threads[0].facts.is_moving = true;
	wait_for(process, 4, 3);
	process->threads[3].facts.is_moving = true;
	wait_for(process, 6, 5);
	process->threads[4].locks.unsure[0] = true;
	assert_text(process, true, "Thread 2 \"t2\" waits for a lock that thread 1 \"t1\" has\n");
}

static void test_the_gil_and_several_locks(void **unused)
{
	struct dump_process *process = make_threads();

	(void)unused;
	for (int i = 1; i <= 3; i++) {
		process->threads[i - 1].gil = 77;
		process->threads[i - 1].state.wait.state = i < 3 ? PYBPF_STATE_GIL : PYBPF_STATE_RUNNING;
	}
	process->threads[2].has_gil = true;
	process->threads[3].locks.held[process->threads[3].locks.nr_held++] = 44;
	process->threads[3].state.wait.state = PYBPF_STATE_RUNNING;
	process->threads[3].cpu = DUMP_WAITS_FOR_CPU;
	wait_for(process, 5, 4);
	wait_for(process, 6, 44);
	wait_for(process, 7, 4);
	assert_text(process, true,
		    "3 threads wait for locks that thread 4 \"t4\" has, which waits for a CPU in f (x.py:12)\n"
		    "2 threads wait for the GIL that thread 3 \"t3\" has, which runs in f (x.py:12)\n");
}

/* No helper says that the threads sleep still; who waits for a GIL is not asked. */
static void test_those_that_have_run_since(void **unused)
{
	struct dump_process *process = make_threads();
	const struct ps_row row = {.process = {.pid = 1}};

	(void)unused;
	process->row = &row;
	wait_for(process, 2, 1);
	process->threads[2].gil = process->threads[3].gil = 77;
	process->threads[2].state.wait.state = PYBPF_STATE_GIL;
	process->threads[3].has_gil = true;
	assert_text(process, false,
		    "Thread 3 \"t3\" waits for the GIL that thread 4 \"t4\" has, which runs in f (x.py:12)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_who_is_waited_for),
		cmocka_unit_test(test_what_is_not_certain_is_not_told),
		cmocka_unit_test(test_the_gil_and_several_locks),
		cmocka_unit_test(test_those_that_have_run_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
