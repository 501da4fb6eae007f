// SPDX-License-Identifier: Apache-2.0
/* Many processes at once that come and go in any order, events that are lost, and memory that is exhausted. */
#include "played_machine.h"

#define ROUNDS 300
#define ACTS   40 /* in each round */

/* The same numbers at each run: xorshift (Marsaglia 2003). */
static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 20) % below;
}

static const struct program programs[] = {
	{"python3.11", 2311, &python311},
	{"python3.9", 2039, &python39},
	{"python3.13", 2313, NULL},
	{"sh", 2001, NULL},
	{"ls", 2002, NULL},
	{"make", 2003, NULL},
};

static const struct program *any_program(void)
{
	return &programs[draw(sizeof(programs) / sizeof(*programs))];
}

/* What a thin Python does when it starts: it maps its library, which is set up at some time later. */
static void go_on(pid_t pid)
{
	const struct machine_process *process = process_of(pid);

	if (!process->nr_loaded && !strcmp(process->program->name, "python3.13"))
		map_python(pid, &python313);
	else
		bring_up(pid);
}

static pid_t any_process(bool alive)
{
	for (int tries = 0; tries < 200; tries++) {
		pid_t pid = FIRST_PID + (pid_t)draw(NR_PIDS);

		if (process_of(pid)->alive == alive)
			return pid;
	}
	return 0;
}

/* Something happens to some process. The first one lives on, as init does. */
static void act(void)
{
	pid_t pid = any_process(true), fresh;

	switch (draw(5)) {
	case 0:
		fresh = any_process(false);
		if (pid && fresh)
			fork_process(pid, fresh);
		break;
	case 1:
		if (pid)
			exec_program(pid, any_program());
		break;
	case 2:
		if (pid && pid != FIRST_PID)
			end_process(pid);
		break;
	default:
		if (pid)
			go_on(pid);
	}
}

/* In the midst of a look, or of an answer. */
static void act_meanwhile(void)
{
	for (unsigned n = draw(4); n; n--)
		act();
}

static void forget(struct processes_record *process, void *arg)
{
	(void)arg;
	processes_forget_record(machine.table, process);
}

static void storm(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned n = draw(ACTS); n; n--)
			act();
		if (!draw(3))
			machine.while_looking = act_meanwhile;
		if (!draw(3))
			machine.kernel.before_put = act_meanwhile;
		if (!draw(10))
			machine.busy_until = machine.now + 0.05;
		machine.now += 0.001 * draw(100);
		assert_int_equal(take_turn(), 0);
		processes_settle_ended(machine.table);
		processes_visit_ended(machine.table, machine.now - 0.5, forget, NULL);
	}
	machine.while_looking = NULL;
	machine.kernel.before_put = NULL;
}

/* Nothing happens any more: now each process is what it is in truth, and each record is of one that lives. */
static void assert_calm(void)
{
	size_t living = 0;

	for (size_t i = 0; i < NR_PIDS; i++) {
		if (machine.processes[i].alive) {
			go_on(machine.processes[i].pid);
			go_on(machine.processes[i].pid);
		}
	}
	run_for(10);
	for (size_t i = 0; i < NR_PIDS; i++) {
		const struct machine_process *process = &machine.processes[i];
		uint32_t state = process->in_kernel ? process->entry.state : 0;
		bool python = process->nr_loaded && process->loaded[0].python;

		if (!process->alive)
			continue;
		assert_true((state == PYBPF_PROC_READY) == python || process->early_copy);
		if (python && !process->early_copy)
			assert_int_equal(sampled_minor(process->pid), process->loaded[0].python->minor);
		if (process->entry.reported)
			living++;
	}
	assert_int_equal(processes_count_living(machine.table), living);
}

static void test_storm(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 100; number++) {
		seed = number;
		power_off();
		power_on();
		start_unseen(FIRST_PID, &shell);
		start_unseen(FIRST_PID + 1, &static_python);
		follow_all();
		storm();
		assert_calm();
		assert_int_equal(counts_now().lost, 0);
	}
}

/* All processes that the kernel has told of, and no others, have a record that says what each is. */
static void assert_all_recorded(void)
{
	size_t reported = 0;

	for (size_t i = 0; i < NR_PIDS; i++) {
		const struct machine_process *process = &machine.processes[i];
		const struct processes_record *record;

		if (!process->alive || !process->in_kernel || !process->entry.reported)
			continue;
		/* An answer came between an exec and its event, which was lost: the entry is that of the program
		 * before. */
		if (process->entry.mm != process->mm)
			continue;
		reported++;
		record = record_of(process->pid);
		assert_non_null(record);
		assert_false(record->ended);
		assert_true((record->state == PROCESSES_PYTHON) == (process->entry.state == PYBPF_PROC_READY));
		assert_true(record->state != PROCESSES_LOOKING);
	}
	assert_in_range(processes_count_living(machine.table), reported, NR_PIDS);
}

/* The ring is small, and mappings are lost: all is found out by what is in the kernel's map, and by looks. */
static void test_storm_with_losses(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 100; number++) {
		seed = number;
		power_off();
		power_on();
		start_unseen(FIRST_PID, &shell);
		start_unseen(FIRST_PID + 1, &static_python);
		follow_all();
		machine.kernel.events_room = 6;
		machine.kernel.deaf = number % 2;
		storm();
		assert_true(counts_now().lost > 0);
		assert_true(counts_now().recovered > 0);
		assert_true((counts_now().lost_mappings > 0) == (number % 2 != 0));
		machine.kernel.events_room = RING_ROOM;
		run_for(10);
		assert_all_recorded();
		/* No record is left of a process that has ended. */
		run_for(1);
		for (size_t i = 0; i < NR_PIDS; i++) {
			if (machine.processes[i].alive)
				end_process(machine.processes[i].pid);
		}
		machine.kernel.losses.events++;
		run_for(0.1);
		assert_int_equal(processes_count_living(machine.table), 0);
		processes_visit_ended(machine.table, machine.now + 1, forget, NULL);
		assert_false(processes_have_ended(machine.table, machine.now + 1));
	}
}

/* What is lost of processes that the filters keep out is no loss of this run. */
static void test_losses_of_others(void **state)
{
	(void)state;
	start_unseen(FIRST_PID, &static_python);
	start_unseen(FIRST_PID + 1, &shell);
	bring_up(FIRST_PID);
	machine.options.filtered = true;
	follow_all();
	run_for(1);
	machine.kernel.events_room = 0;
	process_of(FIRST_PID + 1)->kept_out = true;
	for (pid_t pid = FIRST_PID + 2; pid < FIRST_PID + 12; pid++) {
		fork_process(FIRST_PID + 1, pid);
		exec_program(pid, &thin_python);
	}
	run_for(1);
	assert_int_equal(counts_now().lost, 0);
	/* Their execs: of the forks of a shell nobody is told. */
	assert_int_equal(counts_now().lost_others, 10);
	assert_int_equal(counts_now().seen, 1);
	assert_int_equal(counts_now().missed, 0);
	assert_int_equal(sampled_minor(FIRST_PID), 11);
}

/* Events that the kernel could not tell from others' tell no less that something was lost. */
static void test_losses_that_may_be_of_others(void **state)
{
	uint64_t events;

	(void)state;
	start_unseen(FIRST_PID, &static_python);
	bring_up(FIRST_PID);
	follow_all();
	run_for(1);
	assert_int_equal(processes_count_living(machine.table), 1);
	machine.kernel.events_room = 0;
	events = machine.kernel.losses.events;
	end_process(FIRST_PID);
	machine.kernel.losses.events = events;
	machine.kernel.losses.others++;
	run_for(0.2);
	assert_int_equal(processes_count_living(machine.table), 0);
}

/* The event of a process that user space asks for is on its way, and not lost. */
static void test_a_claim_is_no_loss(void **state)
{
	(void)state;
	start_unseen(FIRST_PID, &static_python);
	bring_up(FIRST_PID);
	follow_pid(FIRST_PID);
	run_for(1);
	start_unseen(FIRST_PID + 1, &static_python);
	process_of(FIRST_PID + 1)->in_kernel = true;
	process_of(FIRST_PID + 1)->entry = (struct pybpf_proc){.state = PYBPF_PROC_CLAIMED};
	machine.kernel.losses.mappings++;
	run_for(0.2);
	assert_int_equal(processes_count_living(machine.table), 1);
	assert_int_equal(counts_now().recovered, 0);
}

/* A process given by PID whose second Python's mapping is lost is looked at once more, and nothing is said to be lost.
 */
static void test_lost_mapping_of_pid(void **state)
{
	(void)state;
	start_unseen(FIRST_PID, &static_python);
	bring_up(FIRST_PID);
	follow_pid(FIRST_PID);
	run_for(1);
	machine.kernel.deaf = true;
	map_python(FIRST_PID, &python313);
	run_for(6);
	assert_int_equal(process_of(FIRST_PID)->entry.nr_runtimes, 2);
	assert_int_equal(counts_now().lost + counts_now().lost_mappings, 0);
}

/* Processes that live for a millisecond each: none is left, and the table's own memory is what it was. */
static void test_short_lives(void **state)
{
	(void)state;
	start_unseen(FIRST_PID, &shell);
	start_unseen(FIRST_PID + 1, &static_python);
	bring_up(FIRST_PID + 1);
	follow_all();
	run_for(1);
	for (int i = 0; i < 5000; i++) {
		/* A PID comes again after 50 ms: later than the tick in which its process started. */
		const pid_t fresh = FIRST_PID + 2 + i % 50;

		fork_process(i % 2 ? FIRST_PID : FIRST_PID + 1, fresh);
		exec_program(fresh, &programs[i % 3]);
		if (i % 3 == 2)
			map_python(fresh, &python313);
		machine.now += 0.001;
		if (i % 3)
			assert_int_equal(take_turn(), 0);
		end_process(fresh);
		assert_int_equal(take_turn(), 0);
		processes_settle_ended(machine.table);
		processes_visit_ended(machine.table, machine.now, forget, NULL);
	}
	run_for(1);
	assert_int_equal(processes_count_living(machine.table), 2);
	/* Each third one and the two static kinds were seen as what they were once each was known. */
	assert_in_range(counts_now().seen, 4900, 5001);
	assert_int_equal(counts_now().missed + counts_now().seen, 5001);
}

/* The PIDs' table of the kernel is full when processes are claimed. */
static void test_no_room_for_claims(void **state)
{
	const uint32_t pids[] = {FIRST_PID, FIRST_PID + 1};

	(void)state;
	start_unseen(FIRST_PID, &static_python);
	start_unseen(FIRST_PID + 1, &static_python);
	machine.kernel.procs_room = 1;
	assert_non_null(open_table());
	assert_int_equal(processes_follow(machine.table, pids, 2), -E2BIG);
	assert_non_null(strstr(machine.said, "cannot hand process 5000001 to the kernel"));
}

static int follow_two(void)
{
	const uint32_t pids[] = {FIRST_PID, FIRST_PID + 1};

	machine.options.follow = machine.options.merge = machine.options.containers = true;
	if (!open_table())
		return -ENOMEM;
	return processes_follow(machine.table, pids, 2);
}

static int live_and_turn(void)
{
	int err = 0;

	for (int i = 0; i < 300 && !err; i++) {
		if (i == 10)
			fork_process(FIRST_PID, FIRST_PID + 2);
		if (i == 20)
			exec_program(FIRST_PID + 2, &thin_python);
		if (i == 30)
			map_python(FIRST_PID + 2, &python313);
		if (i == 40)
			bring_up(FIRST_PID + 2);
		if (i == 50)
			end_process(FIRST_PID + 1);
		machine.now += 0.01;
		err = take_turn();
	}
	return err;
}

/*
 * Each allocation fails once: then the run ends with an error that was said, or goes on, and nothing that is READY is
 * wrong. What was allocated is freed, as the sanitizer sees.
 */
static void test_no_memory(void **state)
{
	long failed = 0;

	(void)state;
	for (long n = 1; n < 1000; n++) {
		int err;

		power_off();
		power_on();
		start_unseen(FIRST_PID, &static_python);
		start_unseen(FIRST_PID + 1, &thin_python);
		map_python(FIRST_PID + 1, &python313);
		process_of(FIRST_PID)->cmdline = "python3.11 app.py";
		process_of(FIRST_PID)->container = "web";
		bring_up(FIRST_PID);
		machine.fail_at = n;
		err = follow_two() ?: live_and_turn();
		assert_truth();
		if (machine.fail_at) {
			/* There is no n-th one. */
			machine.fail_at = 0;
			assert_int_equal(err, 0);
			assert_int_equal(sampled_minor(FIRST_PID), 11);
			assert_true(failed > 10);
			return;
		}
		if (err) {
			failed++;
			assert_int_equal(err, -ENOMEM);
			assert_true(machine.said[0]);
		}
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_storm, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_storm_with_losses, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_losses_of_others, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_losses_that_may_be_of_others, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_a_claim_is_no_loss, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_lost_mapping_of_pid, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_short_lives, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_no_room_for_claims, turn_on, turn_off),
		cmocka_unit_test_setup_teardown(test_no_memory, turn_on, turn_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
