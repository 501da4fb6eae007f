// SPDX-License-Identifier: Apache-2.0
/* Processes that are found, fork, execute and end: who is sampled, as what, and how they are counted. */
#include "played_machine.h"

static void test_found(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	start_unseen(SECOND, &shell);
	start_unseen(THIRD, &thin_python);
	map_python(THIRD, &python313);
	bring_up(THIRD);
	follow_all();
	assert_truth();
	/* Before sampling begins, without waiting. */
	assert_int_equal(sampled_minor(FIRST), 11);
	assert_int_equal(sampled_minor(THIRD), 13);
	assert_int_equal(kernel_state(SECOND), PYBPF_PROC_OTHER);
	assert_true(processes_have_python(machine.table));
	assert_int_equal(counts_now().seen, 2);
	assert_int_equal(counts_now().started, 0);
	assert_string_equal(machine.said, "");
}

/* Only what was given by PID, and its children where those are wanted. */
static void test_given_by_pid(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	start_unseen(SECOND, &static_python);
	fork_process(FIRST, THIRD);
	follow_pid(FIRST);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_READY);
	assert_int_equal(kernel_state(SECOND), 0);
	assert_int_equal(kernel_state(THIRD), PYBPF_PROC_READY);
	assert_int_equal(processes_count_living(machine.table), 2);
	end_process(FIRST);
	end_process(THIRD);
	run_for(0.01);
	assert_int_equal(processes_count_living(machine.table), 0);
}

/* A copy of a Python is one at once: no look at it, no sample lost. */
static void test_forked(void **state)
{
	size_t looks;

	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_all();
	looks = machine.looks;
	fork_process(FIRST, SECOND);
	assert_int_equal(sampled_minor(SECOND), 11);
	run_for(1);
	assert_int_equal(sampled_minor(SECOND), 11);
	assert_int_equal(machine.looks, looks);
	assert_int_equal(machine.told_id, process_of(SECOND)->entry.proc_id);
	assert_int_equal(machine.told_minor, 11);
	assert_true(record_of(SECOND)->known_before_run);
	assert_int_equal(counts_now().seen, 2);
	assert_int_equal(counts_now().started, 1);
}

/* fork and exec of another program: the copy was made for that alone, and is no Python process. */
static void test_fork_and_exec(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_all();
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &shell);
	run_for(1);
	assert_int_equal(kernel_state(SECOND), PYBPF_PROC_OTHER);
	assert_int_equal(counts_now().seen, 1);
	/* And the program is known: the next one is not looked at. */
	machine.looks = 0;
	fork_process(FIRST, THIRD);
	exec_program(THIRD, &shell);
	assert_int_equal(kernel_state(THIRD), PYBPF_PROC_OTHER);
	run_for(1);
	assert_int_equal(machine.looks, 0);
	/* Each of them has ended in the end. */
	end_process(SECOND);
	end_process(THIRD);
	run_for(0.1);
	assert_int_equal(processes_count_living(machine.table), 1);
}

/* exec by exec: one process, counted once, whatever it was in between. */
static void test_exec_by_exec(void **state)
{
	uint64_t before;

	(void)state;
	start_unseen(FIRST, &shell);
	follow_all();
	exec_program(FIRST, &static_python);
	bring_up(FIRST);
	run_for(0.1);
	assert_int_equal(sampled_minor(FIRST), 11);
	before = process_of(FIRST)->entry.proc_id;
	exec_program(FIRST, &thin_python);
	map_python(FIRST, &python313);
	bring_up(FIRST);
	run_for(0.1);
	assert_int_equal(sampled_minor(FIRST), 13);
	assert_true(processes_find_record(machine.table, before)->ended);
	exec_program(FIRST, &shell);
	run_for(1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_OTHER);
	exec_program(FIRST, &static_python);
	bring_up(FIRST);
	run_for(0.1);
	assert_int_equal(sampled_minor(FIRST), 11);
	assert_int_equal(counts_now().seen, 1);
	assert_int_equal(processes_count_living(machine.table), 1);
}

/* Two execs before anything was heard of the first. */
static void test_two_execs_at_once(void **state)
{
	(void)state;
	start_unseen(FIRST, &shell);
	follow_all();
	exec_program(FIRST, &thin_python);
	map_python(FIRST, &python313);
	exec_program(FIRST, &static_python);
	bring_up(FIRST);
	run_for(1);
	assert_int_equal(sampled_minor(FIRST), 11);
	assert_int_equal(counts_now().seen, 1);
}

/* A program that is known to hold its Python is sampled from its exec on. */
static void test_known_program(void **state)
{
	size_t looks;

	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	start_unseen(SECOND, &shell);
	follow_all();
	looks = machine.looks;
	exec_program(SECOND, &static_python);
	assert_int_equal(sampled_minor(SECOND), 11);
	assert_truth();
	run_for(1);
	assert_int_equal(sampled_minor(SECOND), 11);
	assert_int_equal(machine.looks, looks);
	assert_true(record_of(SECOND)->known_before_run);
}

/* The same, with a filter of names: the kernel waits for the answer. */
static void test_known_program_by_name(void **state)
{
	static const struct discovery_filter names;

	(void)state;
	machine.options.names = &names;
	machine.unwanted = "python3.11";
	start_unseen(FIRST, &static_python);
	start_unseen(SECOND, &thin_python);
	map_python(SECOND, &python313);
	follow_all();
	run_for(0.1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNWANTED);
	assert_int_equal(sampled_minor(SECOND), 13);
	machine.unwanted = NULL;
	exec_program(FIRST, &thin_python);
	map_python(FIRST, &python313);
	run_for(0.1);
	assert_int_equal(sampled_minor(FIRST), 13);
	machine.unwanted = "python3.13";
	exec_program(SECOND, &static_python);
	run_for(0.1);
	assert_int_equal(sampled_minor(SECOND), 11);
}

/* A process whose container is not known may be in the one that was excluded. */
static void test_excluded_container_without_answer(void **state)
{
	static const struct discovery_filter names = {.not_containers.count = 1};

	(void)state;
	machine.options.names = &names;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->container = "web";
	process_of(FIRST)->container_err = -ETIMEDOUT;
	start_unseen(SECOND, &static_python);
	process_of(SECOND)->container_err = -ENOENT;
	start_unseen(THIRD, &static_python);
	process_of(THIRD)->container = "web";
	follow_all();
	run_for(0.1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNWANTED);
	assert_int_equal(sampled_minor(SECOND), 11);
	assert_int_equal(kernel_state(THIRD), PYBPF_PROC_UNWANTED);
}

/* The library comes by dlopen long after the start; the next process that maps it needs no look. */
static void test_loaded_later(void **state)
{
	(void)state;
	start_unseen(FIRST, &shell);
	follow_all();
	run_for(5);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_OTHER);
	map_python(FIRST, &python39);
	run_for(0.01);
	assert_int_equal(sampled_minor(FIRST), 9);
	assert_true(record_of(FIRST)->known_before_run);
	bring_up(FIRST);
	run_for(2);
	start_unseen(SECOND, &shell);
	run_for(1);
	/* Only an event or a mapping makes it known. */
	machine.looks = 0;
	exec_program(SECOND, &thin_python);
	map_python(SECOND, &python313);
	run_for(1);
	exec_program(SECOND, &thin_python);
	machine.looks = 0;
	map_python(SECOND, &python313);
	run_for(0.01);
	assert_int_equal(sampled_minor(SECOND), 13);
	assert_int_equal(machine.looks, 0);
}

/* The PID is another process's now: nothing of the one before holds for it. */
static void test_pid_is_used_again(void **state)
{
	uint64_t before;

	(void)state;
	start_unseen(FIRST, &static_python);
	start_unseen(SECOND, &shell);
	bring_up(FIRST);
	follow_all();
	before = process_of(FIRST)->entry.proc_id;
	end_process(FIRST);
	fork_process(SECOND, FIRST);
	run_for(1);
	assert_int_not_equal(process_of(FIRST)->entry.proc_id, before);
	assert_true(processes_find_record(machine.table, before)->ended);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_OTHER);
	exec_program(FIRST, &thin_python);
	map_python(FIRST, &python313);
	bring_up(FIRST);
	run_for(0.1);
	assert_int_equal(sampled_minor(FIRST), 13);
	/* Two processes ran Python, one after the other. */
	assert_int_equal(counts_now().seen, 2);
	assert_int_equal(counts_now().started, 1);
}

/* The mapping of a Python makes a process known that was of no interest: its end is heard of, before any answer. */
static void test_known_by_mapping_and_ended(void **state)
{
	(void)state;
	start_unseen(FIRST, &shell);
	follow_all();
	run_for(1);
	fork_process(FIRST, SECOND);
	run_for(0.1);
	assert_null(record_of(SECOND));
	machine.busy_until = machine.now + 1;
	map_python(SECOND, &python39);
	run_for(0.1);
	assert_int_equal(record_of(SECOND)->state, PROCESSES_LOOKING);
	end_process(SECOND);
	run_for(0.1);
	assert_true(record_of(SECOND)->ended);
	assert_int_equal(processes_count_living(machine.table), 1);
}

/* The PID is used again while the record of the one before is there: the mapping is the next one's. */
static void test_known_by_mapping_of_pid_used_again(void **state)
{
	(void)state;
	start_unseen(FIRST, &shell);
	follow_all();
	run_for(1);
	for (int i = 0; i < 2; i++) {
		fork_process(FIRST, SECOND);
		map_python(SECOND, &python39);
		run_for(0.1);
		assert_int_equal(sampled_minor(SECOND), 9);
		end_process(SECOND);
		run_for(0.1);
	}
	assert_int_equal(counts_now().seen, 2);
}

static void forget(struct processes_record *process, void *arg)
{
	size_t *count = arg;

	processes_forget_record(machine.table, process);
	++*count;
}

/* What was forgotten is still counted, and the record of the PID's next owner stays. */
static void test_forgotten(void **state)
{
	size_t count = 0;

	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_all();
	fork_process(FIRST, SECOND);
	run_for(0.01);
	end_process(SECOND);
	run_for(0.01);
	fork_process(FIRST, SECOND);
	run_for(0.5);
	assert_true(processes_have_ended(machine.table, machine.now - 0.1));
	processes_visit_ended(machine.table, machine.now - 0.1, forget, &count);
	assert_int_equal(count, 1);
	assert_false(processes_have_ended(machine.table, machine.now));
	assert_int_equal(counts_now().seen, 3);
	exec_program(SECOND, &shell);
	run_for(1);
	assert_int_equal(kernel_state(SECOND), PYBPF_PROC_OTHER);
}

static struct processes_counts final_counts(void)
{
	struct processes_counts counts = {0};

	processes_get_final_counts(machine.table, &counts);
	return counts;
}

/* Ended before it was known what it was: missed, with the time that it ran; unless its program is known by then. */
static void test_missed(void **state)
{
	static const struct program unknown = {"unknown", 2099, NULL}, another = {"another", 2098, NULL};
	size_t forgotten = 0;

	(void)state;
	start_unseen(FIRST, &shell);
	follow_all();
	machine.busy_until = machine.now + 1;
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &unknown);
	run_for(0.1);
	end_process(SECOND);
	run_for(0.1);
	processes_settle_ended(machine.table);
	assert_int_equal(counts_now().missed, 1);
	assert_int_equal(counts_now().missed_ns, 1000000);
	/* It may still become known while there is a record of it. */
	assert_int_equal(final_counts().missed, 0);
	processes_visit_ended(machine.table, machine.now + 1, forget, &forgotten);
	assert_int_equal(forgotten, 1);
	assert_int_equal(final_counts().missed, 1);
	assert_int_equal(final_counts().missed_ns, 1000000);
	assert_int_equal(counts_now().missed, 1);
	/* Looked at once, though too young to be sure: it mapped nothing that could be a Python. */
	machine.busy_until = 0;
	fork_process(FIRST, THIRD);
	exec_program(THIRD, &another);
	run_for(0.1);
	end_process(THIRD);
	run_for(0.01);
	processes_settle_ended(machine.table);
	assert_int_equal(counts_now().missed, 1);
	machine.looks = 0;
	fork_process(FIRST, THIRD);
	exec_program(THIRD, &another);
	run_for(1);
	assert_int_equal(machine.looks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_given_by_pid, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_forked, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_fork_and_exec, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_exec_by_exec, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_two_execs_at_once, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_known_program, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_known_program_by_name, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_excluded_container_without_answer, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_loaded_later, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_pid_is_used_again, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_known_by_mapping_and_ended, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_known_by_mapping_of_pid_used_again, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_forgotten, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_missed, turn_on, turn_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
