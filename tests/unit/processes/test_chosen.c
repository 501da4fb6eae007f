// SPDX-License-Identifier: Apache-2.0
/* Some services are sampled, and no others: those that are there, that come later, and whose name comes late. */
#include "played_machine.h"

#include "profile/profile.h"

static struct discovery_service_rules rules;
static struct discovery_service_choice chosen;

static int setup(void **state)
{
	(void)state;
	power_on();
	machine.options.containers = true;
	machine.options.services = &rules;
	machine.options.chosen = &chosen;
	return discovery_service_choose(&chosen, "shop") || discovery_service_choose(&chosen, "web*");
}

static int teardown(void **state)
{
	(void)state;
	power_off();
	discovery_service_free_rules(&rules);
	discovery_service_free_choice(&chosen);
	return 0;
}

static void test_those_that_are_there(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->otel = "shop";
	start_unseen(SECOND, &static_python);
	process_of(SECOND)->otel = "shopping";
	start_unseen(SECOND + 1, &static_python);
	process_of(SECOND + 1)->container = "web-1";
	start_unseen(SECOND + 2, &static_python);
	assert_int_equal(discovery_service_add_rule(&rules, "web=*app.py"), 0);
	process_of(SECOND + 2)->cmdline = "python3 app.py";
	process_of(SECOND + 2)->otel = "payment";
	follow_all();
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_READY);
	assert_int_equal(kernel_state(SECOND), PYBPF_PROC_UNWANTED);
	assert_int_equal(kernel_state(SECOND + 1), PYBPF_PROC_READY);
	/* The rule counts more than what it says itself. */
	assert_int_equal(kernel_state(SECOND + 2), PYBPF_PROC_READY);
	assert_int_equal(machine.service_questions, 4);
	/* Copies are of the same service, and nobody is asked. */
	fork_process(FIRST, SECOND + 3);
	fork_process(SECOND, SECOND + 4);
	run_for(5);
	assert_int_equal(kernel_state(SECOND + 3), PYBPF_PROC_READY);
	assert_int_equal(kernel_state(SECOND + 4), PYBPF_PROC_UNWANTED);
	assert_int_equal(machine.service_questions, 4);
}

/* Also where the kernel knows the program's file already: it waits for the answer. */
static void test_those_that_come_later(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->otel = "shop";
	start_unseen(SECOND, &shell);
	follow_all();
	fork_process(SECOND, SECOND + 1);
	process_of(SECOND + 1)->otel = "web";
	exec_program(SECOND + 1, &static_python);
	fork_process(SECOND, SECOND + 2);
	process_of(SECOND + 2)->otel = "other";
	exec_program(SECOND + 2, &static_python);
	assert_int_equal(kernel_state(SECOND + 1), PYBPF_PROC_UNDECIDED);
	run_for(0.1);
	assert_int_equal(kernel_state(SECOND + 1), PYBPF_PROC_READY);
	assert_int_equal(kernel_state(SECOND + 2), PYBPF_PROC_UNWANTED);
	/* It becomes another program, of another service. */
	process_of(SECOND + 2)->otel = "shop";
	exec_program(SECOND + 2, &static_python);
	run_for(0.1);
	assert_int_equal(kernel_state(SECOND + 2), PYBPF_PROC_READY);
}

/* A container's name comes after its first program, which has workers by then. */
static void test_a_name_that_comes_late(void **state)
{
	(void)state;
	start_unseen(SECOND, &shell);
	follow_all();
	fork_process(SECOND, FIRST);
	exec_program(FIRST, &static_python);
	run_for(1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNWANTED);
	fork_process(FIRST, SECOND + 1);
	run_for(0.3);
	assert_int_equal(kernel_state(SECOND + 1), PYBPF_PROC_UNWANTED);
	assert_null(record_of(SECOND + 1));
	process_of(FIRST)->container = process_of(SECOND + 1)->container = "web";
	run_for(0.3);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_READY);
	assert_int_equal(kernel_state(SECOND + 1), PYBPF_PROC_READY);
}

/* What a process says itself may not be read at once. */
static void test_no_answer(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->otel = "shop";
	process_of(FIRST)->service_err = -ETIMEDOUT;
	follow_all();
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNWANTED);
	process_of(FIRST)->service_err = 0;
	run_for(0.3);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_those_that_are_there, setup, teardown),
		cmocka_unit_test_setup_teardown(test_those_that_come_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_name_that_comes_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
