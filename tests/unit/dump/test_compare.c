// SPDX-License-Identifier: Apache-2.0
/* What became of a thread from one snapshot of its process to the next. */
#include "dump/dump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A snapshot of one thread, which sleeps in f() at this line. */
static struct dump_process *take(int32_t line)
{
	struct dump_process *process = calloc(1, sizeof(*process));

	assert_non_null(process);
	process->threads = calloc(1, sizeof(*process->threads));
	assert_non_null(process->threads);
	process->count = 1;
	process->stacks = profile_new();
	assert_non_null(process->stacks);
	process->threads[0] = (struct dump_thread){.tid = 7, .inside = 7, .start_time = 1000, .is_python = true};
	process->threads[0].state.wait.state = PYBPF_STATE_SLEEP;
	process->threads[0].state.sleeps = 40;
	process->threads[0].stack =
		profile_add_stack(process->stacks, PROFILE_ROOT,
				  profile_add_frame(process->stacks, PROFILE_PYTHON, "f", "f.py", line, 1));
	assert_int_equal(dump_index_make(process), 0);
	return process;
}

/* What is different in the later snapshot. */
struct later {
	int32_t line;
	uint64_t start_time, sleeps;
	bool stood, alone, runs;
	enum dump_change change;
	size_t ended;
};

static void test_changes(void **unused)
{
	static const struct later rows[] = {
		{.line = 3, .start_time = 1000, .sleeps = 40, .change = DUMP_CHANGE_NONE},
		/* It woke up and slept again, however often. */
		{.line = 3, .start_time = 1000, .sleeps = 41, .change = DUMP_CHANGE_SAME_PLACE},
		{.line = 3, .start_time = 1000, .sleeps = 42, .change = DUMP_CHANGE_SAME_PLACE},
		/* Twice, for it was stopped in between. */
		{.line = 3, .start_time = 1000, .sleeps = 42, .stood = true, .change = DUMP_CHANGE_NONE},
		{.line = 3, .start_time = 1000, .sleeps = 41, .stood = true, .change = DUMP_CHANGE_SAME_PLACE},
		{.line = 3, .start_time = 1000, .sleeps = 43, .stood = true, .change = DUMP_CHANGE_SAME_PLACE},
		{.line = 3, .start_time = 1000, .sleeps = 42, .alone = true, .change = DUMP_CHANGE_NONE},
		{.line = 3, .start_time = 1000, .sleeps = 41, .alone = true, .change = DUMP_CHANGE_SAME_PLACE},
		{.line = 4, .start_time = 1000, .sleeps = 40, .change = DUMP_CHANGE_MOVED},
		{.line = 3, .start_time = 1000, .sleeps = 40, .runs = true, .change = DUMP_CHANGE_MOVED},
		/* Another thread has its TID. */
		{.line = 3, .start_time = 1001, .sleeps = 40, .change = DUMP_CHANGE_NEW, .ended = 1},
	};
	(void)unused;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct dump_process *before = take(3), *now = take(rows[i].line);

		now->threads[0].start_time = rows[i].start_time;
		now->threads[0].state.sleeps = rows[i].sleeps;
		if (rows[i].stood)
			before->stood_s = now->stood_s = 0.001;
		before->threads[0].was_stopped = now->threads[0].was_stopped = rows[i].alone;
		if (rows[i].runs)
			now->threads[0].state.wait.state = PYBPF_STATE_RUNNING;
		assert_int_equal(dump_compare(before, now, &now->threads[0]), rows[i].change);
		assert_int_equal(dump_count_ended(before, now), rows[i].ended);
		dump_free(before);
		dump_free(now);
		free(before);
		free(now);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
