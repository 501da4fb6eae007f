// SPDX-License-Identifier: Apache-2.0
/* Precedence and its loss, each in a process of its own. Needs the right to raise a priority. */
#include "rights/priority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

static int niceness(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void burn(double cpu_s)
{
	double end = clock_s(CLOCK_PROCESS_CPUTIME_ID) + cpu_s;

	while (clock_s(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

/* What check returns where the machine gives it too little CPU time; no line has this number. */
#define NO_CPU 255

/* What check returns is the line that is wrong, 0 where none is. */
static void in_child(int (*check)(void))
{
	pid_t pid;
	int status;

	if (geteuid())
		skip();
	pid = fork();
	if (pid == 0) {
		setpriority(PRIO_PROCESS, 0, 0);
		_exit(check());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_CPU) {
		print_message("the machine is too busy to give half a CPU\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define MUST(x)                                                                                                        \
	do {                                                                                                           \
		if (!(x))                                                                                              \
			return __LINE__;                                                                               \
	} while (0)

static int raise_and_restore(void)
{
	priority_raise();
	MUST(niceness() == -20);
	priority_restore();
	MUST(niceness() == 0);
	return 0;
}

static int keep_wish(void)
{
	MUST(!setpriority(PRIO_PROCESS, 0, 5));
	priority_raise();
	MUST(niceness() == 5);
	priority_restore();
	MUST(niceness() == 5);
	return 0;
}

/*
 * A second or more of looks: nothing used, then all of a CPU, as far as the machine gives it: two windows of
 * priority_check() with more than half of it must be enough.
 */
static int lose_by_use(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	double end, give_up;

	priority_raise();
	priority_check();
	for (end = clock_s(CLOCK_MONOTONIC) + 1.2; clock_s(CLOCK_MONOTONIC) < end; nanosleep(&pause, NULL))
		priority_check();
	MUST(niceness() == -20);
	for (give_up = clock_s(CLOCK_MONOTONIC) + 30; niceness() && clock_s(CLOCK_MONOTONIC) < give_up;) {
		double begin = clock_s(CLOCK_MONOTONIC), used = clock_s(CLOCK_PROCESS_CPUTIME_ID);

		for (end = begin + 2.5; clock_s(CLOCK_MONOTONIC) < end && niceness(); priority_check())
			burn(0.01);
		used = clock_s(CLOCK_PROCESS_CPUTIME_ID) - used;
		MUST(!niceness() || used < 0.8 * (clock_s(CLOCK_MONOTONIC) - begin));
	}
	return niceness() ? NO_CPU : 0;
}

static int lose_by_task(void)
{
	priority_raise();
	priority_watch_begin();
	for (int i = 0; i < 10; i++) {
		priority_watch();
		burn(0.01);
	}
	MUST(niceness() == -20);
	priority_watch();
	burn(0.2);
	MUST(niceness() == 0);
	return 0;
}

static void test_raise_and_restore(void **unused)
{
	(void)unused;
	in_child(raise_and_restore);
	in_child(keep_wish);
}

static void test_use(void **unused)
{
	(void)unused;
	in_child(lose_by_task);
	in_child(lose_by_use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raise_and_restore),
		cmocka_unit_test(test_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
