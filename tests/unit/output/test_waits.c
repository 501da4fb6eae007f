// SPDX-License-Identifier: Apache-2.0
/* The table of waits in text. */
#include "profiles.h"

/* Adds a wait of 1 ms in a function. */
static void wait_in(struct profile *p, const char *function, const char *state, const char *wait)
{
	uint32_t stack =
		profile_add_stack(p, on(p, PROFILE_ROOT, function, "app.py", 3), profile_add_wait(p, state, wait, 0));

	assert_int_equal(profile_add_time(p, stack, process(p, 1, "python3"), PROFILE_NONE, 1000, 1), 0);
}

static struct profile *new_wall_profile(void)
{
	struct profile *p = new_profile();

	assert_int_equal(profile_set_measure(p, &(struct profile_measure){.name = "wall", .unit = PROFILE_UNIT_TIME}),
			 0);
	return p;
}

/* Waits for many processes are one for each kind and function; one process keeps its PID. */
static void test_children(void **unused)
{
	struct profile *p = new_wall_profile();
	char *text, name[64];

	(void)unused;
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "[child: %d]", 100 + i);
		wait_in(p, "spawns", "child", name);
		snprintf(name, sizeof(name), "[other: process %d]", 100 + i);
		if (i < 200)
			wait_in(p, "spawns", "other", name);
		snprintf(name, sizeof(name), "[poll: epoll until process %d]", 100 + i / 2);
		if (i < 100)
			wait_in(p, "spawns", "poll", name);
		wait_in(p, i < 299 ? "alone" : "waits", "child", "[child: 4711]");
	}
	wait_in(p, "spawns", "other", "[other: process x]");
	wait_in(p, "spawns", "other", "[other: process x]");
	text = written(p, output_text);
	assert_non_null(strstr(text,
			       "      time   share     waits        mean  wait\n"
			       "  300.0 ms   33.3%       300      1.0 ms  [child: 300 processes] in spawns (app.py)\n"
			       "  299.0 ms   33.1%       299      1.0 ms  [child: 4711] in alone (app.py)\n"
			       "  200.0 ms   22.2%       200      1.0 ms  [other: 200 processes] in spawns (app.py)\n"
			       "  100.0 ms   11.1%       100      1.0 ms  [poll: epoll until any of 50 processes] "
			       "in spawns (app.py)\n"
			       "    2.0 ms    0.2%         2      1.0 ms  [other: process x] in spawns (app.py)\n"
			       "    1.0 ms    0.1%         1      1.0 ms  [child: 4711] in waits (app.py)\n\n"));
	free(text);
	profile_free(p);
}

/* Adds a wait of so many ms in a function of the program's own, in a library's function. */
static void wait_via(struct profile *p, const char *function, const char *library, const char *wait, uint64_t ms)
{
	uint32_t own = on(p, PROFILE_ROOT, function, "app.py", 3), stack;

	assert_int_equal(profile_set_origin(p, "lib/wire.py", PROFILE_STDLIB), 0);
	stack = profile_add_stack(p, on(p, own, library, "lib/wire.py", 5), profile_add_wait(p, "network", wait, 0));
	assert_int_equal(profile_add_time(p, stack, process(p, 1, "python3"), PROFILE_NONE, ms * 1000, 1), 0);
}

/* What is waited for, files and the library's function give way to the own function's name. */
static void test_names_stay(void **unused)
{
	static const char wait[] = "[network: unix /run/service/a-socket-with-a-name.sock]";
	static const struct {
		size_t width;
		bool by_line;
		const char *row;
	} cases[] = {
		{200, false,
		 "  [network: unix /run/service/a-socket-with-a-name.sock] in fetch_the_orders_of_a_customer (app.py), "
		 "via Wire.receive (lib/wire.py)\n"},
		{150, false,
		 "  [network: unix /run/service/a-socket-with-a-name.sock] in fetch_the_orders_of_a_customer (app.py), "
		 "via Wire.receive\n"},
		{120, false,
		 "  [network: ...run/service/a-socket-with-a-name.sock] in fetch_the_orders_of_a_customer\n"},
		{80, false, "  [network: ...e.sock] in fetch_the_orders_of_a_customer\n"},
		{60, false, "  [network: ....sock] in fetch_the_ord...f_a_customer\n"},
		{100, true, "  [network: ...me.sock] in app.py:3  fetch_the_orders_of_a_customer\n"},
	};
	struct profile *p = new_wall_profile();

	(void)unused;
	wait_via(p, "fetch_the_orders_of_a_customer", "Wire.receive", wait, 7);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct output_options options = {.width = cases[i].width, .by_line = cases[i].by_line};
		size_t size;
		char *text = written_bytes(p, output_text, &options, &size);

		if (!strstr(text, cases[i].row))
			assert_string_equal(text, cases[i].row);
		free(text);
	}
	profile_free(p);
}

/* Where there is no room for what tells rows apart they are one, with the sums of all and their processes once. */
static void test_rows_that_look_alike(void **unused)
{
	struct profile *p = new_wall_profile();
	size_t size;
	char *text;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "[child: %d]", 50 + i);
		wait_via(p, "starts_a_command_and_reads_its_output", "Popen._execute_child", name, 1);
		wait_via(p, "starts_a_command_and_reads_its_output", "Popen._try_wait", name, 1);
	}
	wait_via(p, "starts_a_command_and_reads_its_output", "Popen.communicate", "[pipe: read]", 4);
	wait_via(p, "starts_a_command_and_reads_its_output", "Popen._read_until_the_end_of_it", "[pipe: read]", 5);
	text = written_bytes(p, output_text, &(struct output_options){.width = 80}, &size);
	assert_non_null(strstr(text,
			       "  wait (a wider terminal shows: time)\n"
			       "  60.0%      2    4.5 ms  [pipe: read] in starts_a_command_and_reads_its_output\n"
			       "  40.0%      6    1.0 ms  [child: 3 processes] in starts_a_comma...ds_its_output\n\n"));
	free(text);
	text = written(p, output_text);
	assert_non_null(strstr(text, "5.0 ms   33.3%         1      5.0 ms  [pipe: read] in "));
	assert_non_null(strstr(text, "3.0 ms   20.0%         3      1.0 ms  [child: 3 processes] in "));
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_names_stay),
		cmocka_unit_test(test_rows_that_look_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
