// SPDX-License-Identifier: Apache-2.0
/* What processes are called in the profile: by PID and name, program, command line, and container. */
#include "played_machine.h"

#include "profile/attributes.h"
#include "profile/profile.h"

static struct profile *profile;

static int setup(void **state)
{
	(void)state;
	power_on();
	profile = profile_new();
	return !profile;
}

static int teardown(void **state)
{
	(void)state;
	power_off();
	profile_free(profile);
	return 0;
}

static const struct profile_process *shown(pid_t pid)
{
	uint32_t index = processes_add_to_profile(machine.table, record_of(pid), profile);

	assert_int_not_equal(index, PROFILE_NONE);
	return profile_process_at(profile, index);
}

static const char *shown_name(pid_t pid)
{
	return profile_string(profile, shown(pid)->name);
}

/* "": in none. */
static const char *shown_container(pid_t pid)
{
	return profile_string(profile, shown(pid)->container);
}

static void test_pid_and_name(void **state)
{
	static const struct program renamed = {"worker-1", 2311, &python311};

	(void)state;
	start_unseen(FIRST, &static_python);
	follow_all();
	assert_string_equal(shown_name(FIRST), "python3.11");
	assert_int_equal(shown(FIRST)->pid, FIRST);
	assert_string_equal(shown_container(FIRST), "");
	/* It gives itself another name, which it has to its end. It is not read anew for each of its threads. */
	process_of(FIRST)->program = &renamed;
	machine.now += 0.1;
	assert_string_equal(shown_name(FIRST), "worker-1");
}

static void test_command_line(void **state)
{
	(void)state;
	machine.options.cmdline = true;
	start_unseen(FIRST, &static_python);
	start_unseen(SECOND, &static_python);
	process_of(FIRST)->cmdline = "python3.11 app.py --fast";
	follow_all();
	assert_string_equal(shown_name(FIRST), "python3.11 app.py --fast");
	/* Without one (it was overwritten by the program): the name. */
	assert_string_equal(shown_name(SECOND), "python3.11");
}

/* Processes of one program are one: also what multiprocessing starts for it. */
static void test_merged(void **state)
{
	(void)state;
	machine.options.merge = true;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->cmdline = "python3.11 /srv/app.py --fast";
	follow_all();
	assert_string_equal(shown_name(FIRST), "python3.11 app.py");
	assert_int_equal(shown(FIRST)->pid, 0);
	fork_process(FIRST, SECOND);
	process_of(SECOND)->cmdline = "python3.11 -c from multiprocessing.spawn import spawn_main; spawn_main()";
	exec_program(SECOND, &static_python);
	run_for(0.1);
	assert_string_equal(shown_name(SECOND), "python3.11 app.py");
	assert_ptr_equal(shown(SECOND), shown(FIRST));
	/* Another program that it executes has its own name. */
	process_of(SECOND)->cmdline = "python3.11 -m http.server";
	exec_program(SECOND, &static_python);
	run_for(0.1);
	assert_string_equal(shown_name(SECOND), "python3.11 -m http.server");
}

/* Workers that are there before pybpf: of a server that forks them, which the program has started, and of nobody. */
static void test_workers_before_the_run(void **state)
{
	static const struct program web = {"uvicorn", 2311, &python311};
	const pid_t adopter = FIRST_PID + 3, orphan = FIRST_PID + 4;

	(void)state;
	machine.options.merge = true;
	start_unseen(FIRST, &web);
	process_of(FIRST)->cmdline = "/srv/bin/python3 /srv/bin/uvicorn app:app";
	start_unseen(SECOND, &static_python);
	process_of(SECOND)->parent = FIRST;
	process_of(SECOND)->cmdline = "python3.11 -c from multiprocessing.forkserver import main; main()";
	start_unseen(THIRD, &static_python);
	process_of(THIRD)->parent = SECOND;
	process_of(THIRD)->cmdline = process_of(SECOND)->cmdline;
	/* What has adopted an orphan is no Python. */
	start_unseen(adopter, &shell);
	process_of(adopter)->cmdline = "/sbin/init";
	start_unseen(orphan, &static_python);
	process_of(orphan)->parent = adopter;
	process_of(orphan)->cmdline = process_of(SECOND)->cmdline;
	follow_all();
	assert_string_equal(shown_name(THIRD), "uvicorn");
	assert_ptr_equal(shown(THIRD), shown(FIRST));
	assert_string_equal(shown_name(orphan), "python3.11 -c");
}

/* The runtime writes the container's name down a moment after its first exec; it is looked for for three seconds. */
static void test_container_comes_late(void **state)
{
	(void)state;
	machine.options.containers = true;
	start_unseen(FIRST, &shell);
	follow_all();
	fork_process(FIRST, SECOND);
	exec_program(SECOND, &static_python);
	run_for(1);
	assert_string_equal(shown_container(SECOND), "");
	process_of(SECOND)->container = "web";
	run_for(0.3);
	assert_string_equal(shown_container(SECOND), "web");
	/* Likewise where the container is known already, and its name is not. */
	fork_process(FIRST, SECOND + 1);
	process_of(SECOND + 1)->container = "4f797c539e6c";
	process_of(SECOND + 1)->id = "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970";
	exec_program(SECOND + 1, &static_python);
	run_for(0.3);
	assert_string_equal(shown_container(SECOND + 1), "4f797c539e6c");
	/* A worker that is forked meanwhile has its parent's, for now. */
	fork_process(SECOND + 1, SECOND + 2);
	process_of(SECOND + 1)->container = process_of(SECOND + 2)->container = "db";
	run_for(0.3);
	assert_string_equal(shown_container(SECOND + 1), "db");
	assert_string_equal(shown_container(SECOND + 2), "db");
	/* Later than that it is not looked for. */
	run_for(5);
	exec_program(FIRST, &static_python);
	run_for(5);
	process_of(FIRST)->container = "late";
	run_for(1);
	assert_string_equal(shown_container(FIRST), "");
}

/* Once a second for all processes of a control group that is there for a while. */
static void test_a_group_is_asked_for_once(void **state)
{
	unsigned before;

	(void)state;
	machine.options.containers = true;
	machine.one_group = true;
	start_unseen(FIRST, &shell);
	follow_all();
	run_for(5);
	before = machine.container_questions;
	fork_process(FIRST, SECOND);
	process_of(SECOND)->container = "web";
	for (int i = 0; i < 20; i++) {
		exec_program(SECOND, &static_python);
		run_for(0.01);
	}
	assert_in_range(machine.container_questions - before, 1, 2);
	assert_string_equal(shown_container(SECOND), "web");
}

/* No answer in time: not the host, and asked for again. */
static void test_container_without_answer(void **state)
{
	(void)state;
	machine.options.containers = true;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->container = "web";
	process_of(FIRST)->container_err = -ETIMEDOUT;
	follow_all();
	assert_string_equal(shown_container(FIRST), "[unknown]");
	process_of(FIRST)->container_err = 0;
	run_for(0.3);
	assert_string_equal(shown_container(FIRST), "web");
}

/* No answer in time: its own name until then, as a process without arguments has; and asked for again. */
static void test_command_line_without_answer(void **state)
{
	(void)state;
	machine.options.cmdline = true;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->cmdline = "python3.11 app.py";
	process_of(FIRST)->cmdline_err = -ECONNRESET;
	follow_all();
	assert_string_equal(shown_name(FIRST), "python3.11");
	process_of(FIRST)->cmdline_err = 0;
	run_for(0.3);
	assert_string_equal(shown_name(FIRST), "python3.11 app.py");
}

static const char *shown_service(pid_t pid)
{
	return profile_string(profile, shown(pid)->service);
}

/* What is asked once for each process; a copy is asked for when its parent was not. */
static void test_services(void **state)
{
	struct discovery_service_rules rules = {0};

	(void)state;
	machine.options.containers = true;
	machine.options.services = &rules;
	assert_int_equal(discovery_service_add_rule(&rules, "shop=web-*"), 0);
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->otel = "checkout";
	process_of(FIRST)->container = "web-1";
	start_unseen(SECOND, &static_python);
	process_of(SECOND)->otel = "payment";
	process_of(SECOND)->container = "db";
	process_of(SECOND)->container_err = -ETIMEDOUT;
	follow_all();
	assert_string_equal(shown_service(FIRST), "shop");
	assert_string_equal(shown_service(SECOND), "payment");
	for (int i = 0; i < 10; i++)
		assert_string_equal(shown_service(FIRST), "shop");
	assert_int_equal(machine.service_questions, 2);
	/* Its container, which the rule means, is known later. */
	process_of(SECOND)->container_err = 0;
	process_of(SECOND)->container = "web-2";
	run_for(0.3);
	assert_string_equal(shown_service(SECOND), "shop");
	discovery_service_free_rules(&rules);
}

/* An epoch lasts a minute: who has run for a second of it has its service, too, and so has its copy. */
static void test_services_of_what_has_ended(void **state)
{
	struct discovery_service_rules rules = {0};
	struct processes_record *first, *second;

	(void)state;
	machine.options.services = &rules;
	follow_all();
	start_unseen(FIRST, &shell);
	process_of(FIRST)->otel = "checkout";
	process_of(FIRST)->cmdline = "python3.11 app.py";
	exec_program(FIRST, &static_python);
	run_for(1);
	fork_process(FIRST, SECOND);
	run_for(0.01);
	first = record_of(FIRST);
	second = record_of(SECOND);
	end_process(SECOND);
	end_process(FIRST);
	run_for(0.1);
	assert_true(first->ended && second->ended);
	assert_string_equal(shown_service(FIRST), "checkout");
	assert_string_equal(shown_service(SECOND), "checkout");
	assert_int_equal(machine.service_questions, 1);
}

static const char *shown_version(pid_t pid)
{
	static char value[PROFILE_ATTRIBUTE_MAX];

	return profile_attribute_find(profile_string(profile, shown(pid)->attributes), PROFILE_SERVICE_VERSION, value);
}

/* The image's tag, unless the process says another one; with --merge its container's facts would tell copies apart. */
static void test_versions(void **state)
{
	struct discovery_service_rules rules = {0};
	char value[PROFILE_ATTRIBUTE_MAX];

	(void)state;
	machine.options.containers = true;
	machine.options.services = &rules;
	for (pid_t pid = FIRST; pid <= SECOND; pid++) {
		start_unseen(pid, &static_python);
		process_of(pid)->container = "web";
		process_of(pid)->image = "shop:1.4";
	}
	process_of(SECOND)->version = "1.5\n";
	follow_all();
	assert_string_equal(shown_version(FIRST), "1.4");
	assert_string_equal(shown_version(SECOND), "1.5?");
	profile_attribute_find(profile_string(profile, shown(SECOND)->attributes), PROFILE_CONTAINER_IMAGE, value);
	assert_string_equal(value, "shop:1.4");
	fork_process(FIRST, SECOND + 1);
	process_of(SECOND + 1)->container = NULL;
	run_for(0.01);
	assert_string_equal(shown_version(SECOND + 1), "1.4");
	discovery_service_free_rules(&rules);
}

/* A copy has its parent's labels, an exec keeps the container of the program before. */
static void test_labels_are_handed_on(void **state)
{
	(void)state;
	machine.options.containers = machine.options.merge = true;
	start_unseen(FIRST, &static_python);
	process_of(FIRST)->container = "web";
	process_of(FIRST)->cmdline = "python3.11 app.py";
	follow_all();
	fork_process(FIRST, SECOND);
	process_of(SECOND)->container = NULL;
	process_of(SECOND)->cmdline = NULL;
	run_for(0.01);
	assert_string_equal(shown_container(SECOND), "web");
	assert_string_equal(shown_name(SECOND), "python3.11 app.py");
	process_of(SECOND)->cmdline = "python3.11 other.py";
	exec_program(SECOND, &static_python);
	run_for(0.01);
	assert_string_equal(shown_container(SECOND), "web");
	assert_string_equal(shown_name(SECOND), "python3.11 other.py");
}

/* Two runtimes have a container of one name: two names in the profile, which stay what they are. */
static void test_same_name_in_two_runtimes(void **state)
{
	(void)state;
	for (pid_t pid = FIRST; pid < FIRST + 3; pid++) {
		start_unseen(pid, &static_python);
		bring_up(pid);
		process_of(pid)->container = pid == FIRST + 2 ? "db" : "web";
	}
	process_of(SECOND)->runtime = "podman";
	machine.options.containers = true;
	follow_all();
	run_for(1);
	assert_string_equal(shown_container(FIRST), "docker:web");
	assert_string_equal(shown_container(SECOND), "podman:web");
	assert_string_equal(shown_container(FIRST + 2), "db");
	/* What is in the profile already is not called otherwise later. */
	fork_process(FIRST, FIRST + 3);
	exec_program(FIRST + 3, &static_python);
	process_of(FIRST + 3)->container = "db";
	process_of(FIRST + 3)->runtime = "podman";
	run_for(1);
	assert_string_equal(shown_container(FIRST + 2), "db");
	assert_string_equal(shown_container(FIRST + 3), "podman:db");
}

/* The sanitizer's run-time has it. */
size_t __sanitizer_get_current_allocated_bytes(void); /* NOLINT(bugprone-reserved-identifier) */

static void forget(struct processes_record *process, void *arg)
{
	(void)arg;
	processes_forget_record(machine.table, process);
}

/* Containers that are gone are forgotten, and others keep what they are called. */
static void test_many_containers(void **state)
{
	static char names[4000][16];
	size_t early = 0;

	(void)state;
	test_same_name_in_two_runtimes(state);
	for (int i = 0; i < 4000; i++) {
		snprintf(names[i], sizeof(names[i]), "job-%d", i);
		process_of(FIRST + 3)->container = names[i];
		exec_program(FIRST + 3, &static_python);
		run_for(0.01);
		processes_visit_ended(machine.table, machine.now + 1, forget, NULL);
		if (i % 100 == 0)
			assert_string_equal(shown_container(FIRST + 3), names[i]);
		profile_free(profile);
		profile = profile_new();
		if (i == 2000)
			early = __sanitizer_get_current_allocated_bytes();
	}
	assert_true(__sanitizer_get_current_allocated_bytes() < early + (1 << 15));
	assert_string_equal(shown_container(SECOND), "podman:web");
	assert_string_equal(shown_container(FIRST + 2), "db");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pid_and_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_command_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_merged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workers_before_the_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container_comes_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_group_is_asked_for_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container_without_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_services, setup, teardown),
		cmocka_unit_test_setup_teardown(test_services_of_what_has_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_command_line_without_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_labels_are_handed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_name_in_two_runtimes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_containers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
