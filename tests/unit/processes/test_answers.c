// SPDX-License-Identifier: Apache-2.0
/*
 * Answers that come late, for another program than the one that runs by now, or that contradict each other: what the
 * kernel is told of the process then.
 */
#include "played_machine.h"

/* A process whose loader has mapped the library as one piece: the memory contradicts the file. */
static void start_contradicting(pid_t pid)
{
	start_unseen(pid, &thin_python);
	map_python(pid, &python313);
	process_of(pid)->loaded[0].contradicts = true;
}

/* The helper is busy: the process is asked about again, and the answer is used once it is there. */
static void test_pending(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	machine.busy_until = machine.now + 3;
	follow_all();
	run_for(1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNDECIDED);
	assert_int_equal(machine.looks, 0);
	assert_true(processes_get_next_look(machine.table) < machine.now + 0.05);
	run_for(2);
	assert_int_equal(sampled_minor(FIRST), 11);
}

/* Until it is known what a program maps it is looked at often. */
static void test_a_start_is_watched(void **state)
{
	(void)state;
	machine.options.all = true;
	start_unseen(FIRST, &shell);
	follow_all();
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &thin_python);
	run_for(0.1);
	assert_true(processes_get_next_look(machine.table) < machine.now + 0.005);
}

/* In a run without end less so. */
static void test_a_start_is_watched_with_patience(void **state)
{
	(void)state;
	machine.options.patient = machine.options.all = true;
	start_unseen(FIRST, &shell);
	follow_all();
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &thin_python);
	run_for(0.1);
	assert_true(processes_get_next_look(machine.table) > machine.now + 0.005);
	assert_true(processes_get_next_look(machine.table) < machine.now + 0.05);
}

/* As long as there is no answer it is not known what it runs: that is not a process without Python. */
static void test_undecided(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	machine.busy_until = machine.now + 3;
	follow_pid(FIRST);
	run_for(1);
	assert_int_equal(processes_count_undecided(machine.table), 1);
	assert_false(processes_have_python(machine.table));
	run_for(3);
	assert_int_equal(processes_count_undecided(machine.table), 0);
	assert_true(processes_have_python(machine.table));
	/* No Python, which is known. */
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &shell);
	run_for(1);
	assert_int_equal(processes_count_undecided(machine.table), 0);
}

/* The helper has answered: that it maps no file yet. Only an answer that is missing is nobody's. */
static void test_unmapped(void **state)
{
	(void)state;
	start_unseen(FIRST, &shell);
	process_of(FIRST)->unmapped = true;
	follow_pid(FIRST);
	run_for(1);
	assert_int_equal(record_of(FIRST)->state, PROCESSES_LOOKING);
	assert_int_equal(processes_count_undecided(machine.table), 0);
}

/* The end of the run finds a process that started a moment ago: its answer is not late. */
static void test_just_asked(void **state)
{
	(void)state;
	start_unseen(FIRST, &shell);
	follow_pid(FIRST);
	run_for(1);
	machine.busy_until = machine.now + 30;
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &static_python);
	run_for(0.1);
	assert_int_equal(record_of(SECOND)->state, PROCESSES_LOOKING);
	assert_int_equal(processes_count_undecided(machine.table), 0);
	run_for(2);
	assert_int_equal(processes_count_undecided(machine.table), 1);
	/* The answer comes in the end, and the next question has waited for nothing yet. */
	process_of(SECOND)->unmapped = true;
	machine.busy_until = 0;
	run_for(0.1);
	assert_int_equal(processes_count_undecided(machine.table), 0);
	machine.busy_until = machine.now + 30;
	run_for(0.2);
	assert_int_equal(processes_count_undecided(machine.table), 0);
}

/* It is not asked about, as a helper gave no answer about its user's processes: that is no answer, either. */
static void test_undecided_while_left_alone(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->left_alone = true;
	follow_pid(FIRST);
	run_for(1);
	assert_int_equal(processes_count_undecided(machine.table), 1);
	process_of(FIRST)->left_alone = false;
	run_for(6);
	assert_int_equal(processes_count_undecided(machine.table), 0);
	assert_int_equal(sampled_minor(FIRST), 11);
}

/* It was refused: for what it is, or because a helper crashed at it. */
static void test_refused_without_answer(void **state)
{
	static const int no_answer[] = {-ECONNRESET, -ETIMEDOUT, -EPROTO, -ENOTCONN};

	(void)state;
	start_unseen(FIRST, &shell);
	follow_pid(FIRST);
	run_for(1);
	for (size_t i = 0; i <= sizeof(no_answer) / sizeof(*no_answer); i++) {
		pid_t pid = SECOND + (pid_t)i;

		fork_process(FIRST, pid);
		process_of(pid)->why = "it is left out";
		process_of(pid)->why_err = i ? no_answer[i - 1] : -ENOTSUP;
		exec_program(pid, &static_python);
		run_for(1);
		assert_int_equal(record_of(pid)->state, PROCESSES_REFUSED);
		assert_int_equal(processes_count_undecided(machine.table), i);
	}
}

/* The answer is there before it would be asked for: it is taken at once. */
static void test_answered(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	machine.busy_until = 1e9;
	follow_all();
	assert_int_equal(machine.subject.pid, FIRST);
	assert_int_equal(machine.subject.life, process_of(FIRST)->entry.proc_id);
	machine.busy_until = 0;
	machine.answered = true;
	assert_int_equal(take_turn(), 0);
	assert_int_equal(sampled_minor(FIRST), 11);
}

/* The answer is for a run beside this one, which does not know its process: it stays for that one. */
static void test_an_answer_for_another_run(void **state)
{
	(void)state;
	start_unseen(FIRST, &thin_python);
	follow_all();
	machine.life_of_another_run = 1000000;
	machine.subject = (struct helper_subject){SECOND, machine.life_of_another_run};
	machine.answered = true;
	run_for(0.1);
	assert_true(machine.answered);
	assert_int_equal(machine.discarded.life, 0);
}

/* Nobody waits any more for the answer: it is thrown away, and no other process waits for it. */
static void test_answered_too_late(void **state)
{
	uint64_t life;

	(void)state;
	start_unseen(FIRST, &static_python);
	start_unseen(SECOND, &thin_python);
	map_python(SECOND, &python313);
	machine.busy_until = machine.now + 3;
	follow_all();
	life = process_of(FIRST)->entry.proc_id;
	machine.subject = (struct helper_subject){FIRST, life};
	end_process(FIRST);
	machine.answered = true;
	machine.busy_until = 0;
	assert_int_equal(take_turn(), 0);
	assert_false(machine.answered);
	assert_int_equal(machine.discarded.life, life);
	run_for(0.01);
	assert_int_equal(sampled_minor(SECOND), 13);
}

/* Its user's processes are left alone for a while: it is asked about again after some seconds, and no sentence comes.
 */
static void test_left_alone(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->left_alone = true;
	follow_all();
	run_for(4);
	assert_int_equal(machine.looks, 1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNDECIDED);
	process_of(FIRST)->left_alone = false;
	run_for(2);
	assert_int_equal(sampled_minor(FIRST), 11);
	assert_string_equal(machine.said, "");
}

static void exec_thin(void)
{
	exec_program(FIRST, &thin_python);
	map_python(FIRST, &python313);
	bring_up(FIRST);
}

/* Another program is executed while the process is looked at: the answer is of the one before. */
static void test_exec_while_looking(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	machine.while_looking = exec_thin;
	follow_all();
	assert_truth();
	run_for(1);
	assert_int_equal(sampled_minor(FIRST), 13);
	/* Nor is the program before taken for what the next one is. */
	exec_program(FIRST, &static_python);
	bring_up(FIRST);
	run_for(1);
	assert_int_equal(sampled_minor(FIRST), 11);
}

static void exec_shell(void)
{
	exec_program(FIRST, &shell);
}

static void test_exec_of_no_python_while_looking(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	machine.while_looking = exec_shell;
	follow_all();
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNDECIDED);
	run_for(1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_OTHER);
	/* A Python was looked at, but not what its file is: that is not remembered of the shell's. */
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &shell);
	assert_int_equal(kernel_state(SECOND), PYBPF_PROC_OTHER);
	exec_program(SECOND, &static_python);
	bring_up(SECOND);
	run_for(0.1);
	assert_int_equal(sampled_minor(SECOND), 11);
}

/*
 * exec comes between the look at the entry and its change, so that the answer replaces the new program's entry: its
 * event has the old number, which tells. assert_truth() runs all the time.
 */
static void test_exec_while_answering(void **state)
{
	uint64_t before;

	(void)state;
	start_unseen(FIRST, &static_python);
	machine.kernel.before_put = exec_thin;
	follow_all();
	/* The entry of the program before stands there, until the event is heard: no sample uses it, by its mm. */
	run_for(1);
	before = process_of(FIRST)->entry.proc_id;
	assert_int_equal(sampled_minor(FIRST), 13);
	assert_int_equal(process_of(FIRST)->entry.mm, process_of(FIRST)->mm);
	assert_non_null(record_of(FIRST));
	assert_false(record_of(FIRST)->ended);
	run_for(5);
	assert_int_equal(process_of(FIRST)->entry.proc_id, before);
	assert_int_equal(counts_now().seen, 1);
}

static void exec_static(void)
{
	exec_program(FIRST, &static_python);
	bring_up(FIRST);
}

/* The same, of a program whose Python the kernel knew: its own entry is undone by the answer, and found again. */
static void test_exec_of_known_while_answering(void **state)
{
	(void)state;
	start_unseen(FIRST, &shell);
	start_unseen(SECOND, &static_python);
	bring_up(SECOND);
	follow_all();
	run_for(1);
	exec_program(FIRST, &thin_python);
	map_python(FIRST, &python313);
	machine.kernel.before_put = exec_static;
	run_for(1);
	assert_null(machine.kernel.before_put);
	assert_int_equal(sampled_minor(FIRST), 11);
	assert_int_equal(process_of(FIRST)->entry.mm, process_of(FIRST)->mm);
	assert_int_equal(record_of(FIRST)->state, PROCESSES_PYTHON);
	assert_int_equal(counts_now().seen, 2);
}

/* Memory that contradicts the files for a moment is a loader's: nothing is said, and the process is sampled then. */
static void test_mismatch_ends(void **state)
{
	(void)state;
	start_contradicting(FIRST);
	follow_all();
	run_for(0.05);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNDECIDED);
	run_for(1);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNDECIDED);
	process_of(FIRST)->loaded[0].contradicts = false;
	bring_up(FIRST);
	run_for(1.1);
	assert_int_equal(sampled_minor(FIRST), 13);
	assert_string_equal(machine.said, "");
	assert_int_equal(counts_now().refused, 0);
	assert_int_equal(counts_now().seen, 1);
}

/* It lasts: refused after two seconds, in one sentence, said once; the process counts as refused. */
static void test_mismatch_lasts(void **state)
{
	(void)state;
	start_contradicting(FIRST);
	follow_pid(FIRST);
	run_for(1.9);
	assert_string_equal(machine.said, "");
	run_for(1.2);
	assert_string_equal(machine.said, "the memory of process 5000000 contradicts its layout\n");
	assert_int_equal(record_of(FIRST)->state, PROCESSES_REFUSED);
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNDECIDED);
	assert_int_equal(counts_now().refused, 1);
	run_for(10);
	assert_string_equal(machine.said, "the memory of process 5000000 contradicts its layout\n");
	/* It was a loader after all, one that was stopped. */
	process_of(FIRST)->loaded[0].contradicts = false;
	bring_up(FIRST);
	run_for(1.1);
	assert_int_equal(sampled_minor(FIRST), 13);
	assert_int_equal(counts_now().refused, 0);
	/* Another Python that it maps later contradicts, too: people know already. */
	map_python(FIRST, &python311);
	process_of(FIRST)->loaded[1].contradicts = true;
	run_for(10);
	assert_string_equal(machine.said, "the memory of process 5000000 contradicts its layout\n");
}

/* The process ends meanwhile: the sentence comes if the contradiction had lasted a tenth of a second. */
static void test_mismatch_and_end(void **state)
{
	(void)state;
	start_contradicting(FIRST);
	follow_pid(FIRST);
	run_for(0.05);
	end_process(FIRST);
	run_for(0.01);
	assert_string_equal(machine.said, "");
	power_off();
	power_on();
	start_contradicting(FIRST);
	follow_pid(FIRST);
	run_for(0.15);
	end_process(FIRST);
	run_for(0.01);
	assert_string_equal(machine.said, "the memory of process 5000000 contradicts its layout\n");
}

/* A file that was once contradicted is not trusted: the next process that maps it is looked at, and validated. */
static void test_mismatched_file(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->loaded[0].contradicts = true;
	start_unseen(SECOND, &shell);
	follow_all();
	run_for(0.1);
	exec_program(SECOND, &static_python);
	assert_int_equal(kernel_state(SECOND), PYBPF_PROC_UNDECIDED);
	bring_up(SECOND);
	run_for(1);
	assert_int_equal(sampled_minor(SECOND), 11);
	/* One that agrees vouches for those that come later. */
	fork_process(SECOND, THIRD);
	exec_program(THIRD, &static_python);
	run_for(0.1);
	assert_int_equal(sampled_minor(THIRD), 11);
	assert_int_not_equal(kernel_state(FIRST), PYBPF_PROC_READY);
}

/* A Python whose addresses do not follow from its file: each process of it is looked at. */
static void test_file_without_addresses(void **state)
{
	static const struct python copied = {.version = "3.8.1", .minor = 8, .file_id = 38, .moves = true};
	static const struct program program = {"python3.8", 2038, &copied};

	(void)state;
	start_unseen(FIRST, &program);
	bring_up(FIRST);
	follow_all();
	machine.looks = 0;
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &program);
	assert_int_equal(kernel_state(SECOND), PYBPF_PROC_UNDECIDED);
	run_for(0.1);
	assert_int_equal(sampled_minor(SECOND), 8);
	assert_int_equal(machine.looks, 1);
}

/* One process of a file agrees with its layout: others of it are not validated any more. */
static void test_validated_once(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	follow_all();
	run_for(1);
	assert_true(machine.validations > 1);
	bring_up(FIRST);
	run_for(1);
	machine.validations = 0;
	start_unseen(SECOND, &shell);
	exec_program(SECOND, &thin_python);
	exec_program(SECOND, &static_python);
	run_for(1);
	assert_int_equal(sampled_minor(SECOND), 11);
	assert_int_equal(machine.validations, 0);
}

/* No answer about its memory: it goes on being sampled, and is asked about again. */
static void test_no_answer(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	machine.no_answer = true;
	follow_all();
	run_for(1);
	assert_int_equal(sampled_minor(FIRST), 11);
	machine.no_answer = false;
	machine.validations = 0;
	run_for(3);
	assert_int_equal(machine.validations, 1);
}

/* A Python that is not supported: said to who asked for it by PID, counted by who asked for all. */
static void test_refused(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->why = "process 5000000 runs Python 3.99, which is not supported";
	follow_pid(FIRST);
	assert_string_equal(machine.said, "process 5000000 runs Python 3.99, which is not supported\n");
	assert_int_equal(counts_now().refused, 1);
	power_off();
	power_on();
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->why = "process 5000000 runs Python 3.99, which is not supported";
	follow_all();
	assert_string_equal(machine.said, "");
	assert_int_equal(kernel_state(FIRST), PYBPF_PROC_UNWANTED);
	assert_int_equal(counts_now().refused, 1);
	assert_int_equal(processes_count_refused(machine.table), 1);
	/* One that has ended is left out no longer, and was. */
	end_process(FIRST);
	run_for(0.1);
	assert_int_equal(counts_now().refused, 1);
	assert_int_equal(processes_count_refused(machine.table), 0);
}

/* A program with one Python loads a plugin that brings another: both are sampled, also in copies. */
static void test_second_python(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_all();
	run_for(1);
	map_python(FIRST, &python39);
	run_for(0.1);
	assert_int_equal(process_of(FIRST)->entry.nr_runtimes, 2);
	bring_up(FIRST);
	run_for(2);
	fork_process(FIRST, SECOND);
	run_for(0.1);
	assert_int_equal(process_of(SECOND)->entry.nr_runtimes, 2);
	assert_int_equal(record_of(SECOND)->nr_runtimes, 2);
	assert_int_equal(counts_now().several, 1);
	assert_string_equal(counts_now().versions, "3.11 and 3.9");
}

/* A copy is made before the kernel knows of the second one, and told of after. */
static void test_second_python_and_fork(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_all();
	run_for(1);
	map_python(FIRST, &python39);
	kernel_consume_mappings(&machine.kernel);
	fork_process(FIRST, SECOND);
	run_for(1);
	assert_int_equal(process_of(FIRST)->entry.nr_runtimes, 2);
	assert_int_equal(process_of(SECOND)->entry.nr_runtimes, 2);
}

/* Of two Pythons, one is contradicted by its memory: the other one is sampled all the time. */
static void test_one_of_two_is_mismatched(void **state)
{
	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_all();
	run_for(1);
	map_python(FIRST, &python39);
	process_of(FIRST)->loaded[1].contradicts = true;
	run_for(1);
	assert_int_equal(sampled_minor(FIRST), 11);
	assert_int_equal(process_of(FIRST)->entry.nr_runtimes, 2);
	assert_true(process_of(FIRST)->entry.runtimes[1].refused);
	assert_false(process_of(FIRST)->entry.runtimes[0].refused);
	process_of(FIRST)->loaded[1].contradicts = false;
	bring_up(FIRST);
	run_for(2.1);
	assert_false(process_of(FIRST)->entry.runtimes[1].refused);
	assert_int_equal(counts_now().refused, 0);
}

/* More Pythons than there is room for: said once, and those that are known go on. */
static void test_too_many_pythons(void **state)
{
	static const struct python more[] = {{"3.7.1", 7, 37, 1037, false},
					     {"3.8.1", 8, 38, 1038, false},
					     {"3.10.1", 10, 310, 1310, false},
					     {"3.12.1", 12, 312, 1312, false}};

	(void)state;
	start_unseen(FIRST, &static_python);
	bring_up(FIRST);
	follow_pid(FIRST);
	run_for(1);
	for (size_t i = 0; i < PYBPF_MAX_RUNTIMES; i++)
		map_python(FIRST, &more[i]);
	bring_up(FIRST);
	run_for(1);
	assert_int_equal(process_of(FIRST)->entry.nr_runtimes, PYBPF_MAX_RUNTIMES);
	assert_non_null(strstr(machine.said, "Pythons in it"));
	assert_int_equal(sampled_minor(FIRST), 11);
}

/* The layouts' table is full: said, and the process is refused; nothing is sampled with another one's layout. */
static void test_no_room_for_layouts(void **state)
{
	(void)state;
	machine.kernel.layouts_room = 1;
	start_unseen(FIRST, &static_python);
	start_unseen(SECOND, &thin_python);
	map_python(SECOND, &python313);
	follow_all();
	run_for(1);
	assert_int_equal(sampled_minor(FIRST), 11);
	assert_int_not_equal(kernel_state(SECOND), PYBPF_PROC_READY);
	assert_non_null(strstr(machine.said, "cannot hand process 5000001 to the kernel"));
	assert_int_equal(counts_now().refused, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_start_is_watched, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_a_start_is_watched_with_patience, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_pending, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_undecided, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_unmapped, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_just_asked, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_undecided_while_left_alone, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_refused_without_answer, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_answered, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_an_answer_for_another_run, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_answered_too_late, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_left_alone, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_exec_while_looking, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_exec_of_no_python_while_looking, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_exec_while_answering, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_exec_of_known_while_answering, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_mismatch_ends, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_mismatch_lasts, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_mismatch_and_end, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_mismatched_file, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_file_without_addresses, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_validated_once, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_no_answer, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_refused, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_second_python, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_second_python_and_fork, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_one_of_two_is_mismatched, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_too_many_pythons, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_no_room_for_layouts, turn_on, turn_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
