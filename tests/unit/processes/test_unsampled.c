// SPDX-License-Identifier: Apache-2.0
/* Python processes without a sample in Python code: an exec keeps the process, a used PID makes another one. */
#include "played_machine.h"

#define FIRST  (FIRST_PID + 0)
#define SECOND (FIRST_PID + 1)

static int setup(void **state)
{
	(void)state;
	power_on();
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_all();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	power_off();
	return 0;
}

static void test_until_it_is_sampled(void **state)
{
	(void)state;
	assert_true(processes_is_unsampled(record_of(FIRST)));
	processes_mark_sampled(machine.table, record_of(FIRST));
	assert_false(processes_is_unsampled(record_of(FIRST)));
}

static void test_only_wanted_pythons(void **state)
{
	const struct processes_record *copy;

	(void)state;
	record_of(FIRST)->wanted = false;
	assert_false(processes_is_unsampled(record_of(FIRST)));
	fork_process(FIRST, SECOND);
	run_for(0.1);
	copy = record_of(SECOND);
	assert_true(processes_is_unsampled(copy));
	/* A fork that was made to execute another program. */
	exec_program(SECOND, &shell);
	run_for(1);
	assert_false(processes_is_unsampled(copy));
	assert_false(processes_is_unsampled(record_of(SECOND)));
}

/* Its samples are counted when it has executed another program already. */
static void test_samples_of_the_program_before_an_exec(void **state)
{
	struct processes_record *before = record_of(FIRST);

	(void)state;
	before->cpu_begin_ns = 77;
	before->cpu_begin_known = true;
	exec_program(FIRST, &static_python);
	bring_up(FIRST);
	run_for(1);
	assert_ptr_not_equal(record_of(FIRST), before);
	assert_false(processes_is_unsampled(before));
	assert_true(processes_is_unsampled(record_of(FIRST)));
	assert_int_equal(record_of(FIRST)->cpu_begin_ns, 77);
	assert_true(record_of(FIRST)->cpu_begin_known);
	processes_mark_sampled(machine.table, before);
	assert_false(processes_is_unsampled(record_of(FIRST)));
}

/* The event of the exec is lost: its record is found later, and has what the one before had. */
static void test_exec_that_was_lost(void **state)
{
	struct processes_record *before = record_of(FIRST);

	(void)state;
	before->cpu_begin_ns = 77;
	before->cpu_begin_known = true;
	machine.kernel.events_room = 0;
	exec_program(FIRST, &static_python);
	bring_up(FIRST);
	machine.kernel.events_room = RING_ROOM;
	run_for(1);
	assert_int_equal(counts_now().recovered, 1);
	assert_ptr_not_equal(record_of(FIRST), before);
	assert_true(before->ended);
	assert_false(processes_is_unsampled(before));
	assert_true(processes_is_unsampled(record_of(FIRST)));
	assert_int_equal(record_of(FIRST)->cpu_begin_ns, 77);
	assert_true(record_of(FIRST)->cpu_begin_known);
	assert_int_equal(counts_now().seen, 1);
}

static void test_samples_of_another_process_of_that_pid(void **state)
{
	struct processes_record *before = record_of(FIRST);

	(void)state;
	start_unseen(SECOND, &static_python);
	run_for(1);
	fork_process(FIRST, SECOND + 1);
	end_process(FIRST);
	run_for(1);
	fork_process(SECOND + 1, FIRST);
	run_for(1);
	assert_ptr_not_equal(record_of(FIRST), before);
	processes_mark_sampled(machine.table, before);
	assert_true(processes_is_unsampled(record_of(FIRST)));
	assert_false(processes_is_unsampled(before));
}

static void test_forgotten_ones_are_counted(void **state)
{
	(void)state;
	fork_process(FIRST, SECOND);
	run_for(0.1);
	end_process(SECOND);
	run_for(0.1);
	assert_int_equal(counts_now().unsampled, 0);
	processes_forget_record(machine.table, record_of(SECOND));
	assert_int_equal(counts_now().unsampled, 1);
	end_process(FIRST);
	run_for(0.1);
	processes_mark_sampled(machine.table, record_of(FIRST));
	processes_forget_record(machine.table, record_of(FIRST));
	assert_int_equal(counts_now().unsampled, 1);
}

static void test_cpu_time(void **state)
{
	struct processes_record *process = record_of(FIRST);
	uint64_t ns = 5;

	(void)state;
	/* It is older than the run, and its time when sampling began is not known. */
	process->cpu_ns = 900;
	process->cpu_begin_known = false;
	assert_false(processes_get_cpu(process, &ns));
	process->started = true;
	assert_true(processes_get_cpu(process, &ns));
	assert_int_equal(ns, 900);
	process->cpu_begin_ns = 800;
	process->cpu_begin_known = true;
	assert_true(processes_get_cpu(process, &ns));
	assert_int_equal(ns, 100);
	process->cpu_ns = 0;
	assert_false(processes_get_cpu(process, &ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_until_it_is_sampled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_wanted_pythons, setup, teardown),
		cmocka_unit_test_setup_teardown(test_samples_of_the_program_before_an_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_that_was_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_samples_of_another_process_of_that_pid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_ones_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cpu_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
