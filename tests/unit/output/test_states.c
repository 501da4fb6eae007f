// SPDX-License-Identifier: Apache-2.0
/* Waits in text: their functions, the columns of states, the line of thread-seconds. */
#include "profiles.h"

static uint32_t waiting(struct profile *p, uint32_t stack, const char *state, const char *name)
{
	return profile_add_stack(p, stack, profile_add_wait(p, state, name, 0));
}

/* f runs 100, sleeps 400, waits for a lock 50; g, called by f, sleeps 300; 150 is a wait without a function. */
static struct profile *wall(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), f = on(p, PROFILE_ROOT, "f", "a.py", 1), g = on(p, f, "g", "b.py", 2);

	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	take_in(p, f, owner, 100);
	take_in(p, waiting(p, f, "sleep", "[sleep]"), owner, 400);
	take_in(p, waiting(p, f, "lock", "[lock]"), owner, 50);
	take_in(p, waiting(p, g, "sleep", "[sleep]"), owner, 300);
	take_in(p, waiting(p, PROFILE_ROOT, "sleep", "[sleep]"), owner, 150);
	return p;
}

static char *shown(const struct profile *p, const struct output_options *options)
{
	size_t size;

	return written_bytes(p, output_text, options, &size);
}

static void test_waits_have_their_functions(void **unused)
{
	struct profile *p = wall();
	char *text = shown(p, &(struct output_options){0});

	(void)unused;
	assert_string_equal(text, "wall: 1.0 ms\n\n"
				  "      time   share  wait\n"
				  "    400 us   40.0%  [sleep] in f (a.py)\n"
				  "    300 us   30.0%  [sleep] in g (b.py)\n"
				  "    150 us   15.0%  [sleep]\n"
				  "     50 us    5.0%  [lock] in f (a.py)\n\n"
				  "    self   self%     total  total%  function\n"
				  "  100 us   10.0%    850 us   85.0%  f (a.py)\n"
				  "    0 us    0.0%    300 us   30.0%  g (b.py)\n");
	free(text);
	text = shown(p, &(struct output_options){.by_line = true});
	assert_non_null(strstr(text, "  [sleep] in a.py:1  f\n"));
	free(text);
	profile_free(p);
}

/* Time of suspended tasks is of no thread, is in no wait that is counted, and overlaps. */
static void test_suspended_tasks(void **unused)
{
	struct profile *p = new_profile(), *only = new_profile();
	uint32_t owner = process(p, 1, "x"), wait = waiting(p, on(p, PROFILE_ROOT, "f", "a.py", 1), "lock", "[lock]");
	uint32_t task = waiting(p, on(p, PROFILE_ROOT, "g", "a.py", 5), PROFILE_STATE_SUSPENDED, "[awaits: Future]");
	char *text;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	assert_int_equal(profile_add_time(p, wait, owner, PROFILE_NONE, 100, 2), 0);
	take_in(p, task, owner, 900);
	text = shown(p, &(struct output_options){0});
	assert_string_equal(text,
			    "wall: 100 us of threads, and 900 us of suspended tasks, which overlap: a task counts "
			    "while those that it awaits do\n\n"
			    "      time   share     waits        mean  wait\n"
			    "    900 us   90.0%         -           -  [awaits: Future] in g (a.py)\n"
			    "    100 us   10.0%         2       50 us  [lock] in f (a.py)\n\n"
			    "    self   self%     total  total%  function\n"
			    "    0 us    0.0%    900 us   90.0%  g (a.py)\n"
			    "    0 us    0.0%    100 us   10.0%  f (a.py)\n");
	free(text);
	profile_free(p);
	assert_int_equal(profile_set_measure(only, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	take_in(only, waiting(only, PROFILE_ROOT, PROFILE_STATE_SUSPENDED, "[awaits: Future]"), process(only, 1, "x"),
		7);
	text = shown(only, &(struct output_options){0});
	assert_non_null(strstr(text, "wall: 7 us of suspended tasks, which overlap: "));
	free(text);
	profile_free(only);
}

/* main, of the program, calls get of a package, which calls recv of the standard library. */
static void test_waits_have_the_nearest_own_function(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), main = on(p, PROFILE_ROOT, "main", "app.py", 7), get, recv, idle;
	uint32_t wait, sample;
	char *text;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	get = on(p, main, "get", "requests/api.py", 1);
	recv = on(p, get, "recv", "socket.py", 1);
	idle = on(p, on(p, PROFILE_ROOT, "run", "threading.py", 1), "loop", "requests/api.py", 1);
	assert_int_equal(profile_set_origin(p, "requests/api.py", PROFILE_THIRD_PARTY), 0);
	assert_int_equal(profile_set_origin(p, "socket.py", PROFILE_STDLIB), 0);
	assert_int_equal(profile_set_origin(p, "threading.py", PROFILE_STDLIB), 0);
	wait = waiting(p, recv, "network", "[network: tcp 10.0.0.5:80]");
	assert_int_equal(profile_add_time(p, wait, owner, PROFILE_NONE, 2500000, 2), 0);
	sample = profile_find_sample(p, wait, owner, PROFILE_NONE);
	assert_int_equal(profile_add_event(p, 5, sample, 2000000), 0);
	assert_int_equal(profile_add_event(p, 9, sample, 500000), 0);
	assert_int_equal(profile_add_time(p, waiting(p, on(p, idle, "wait", "threading.py", 1), "lock", "[lock]"),
					  owner, PROFILE_NONE, 900, 1),
			 0);
	text = shown(p, &(struct output_options){0});
	assert_non_null(strstr(
		text,
		"\n      time   share     waits        mean     longest  wait\n"
		"   2.500 s  100.0%         2     1.250 s     2.000 s  [network: tcp 10.0.0.5:80] in main (app.py), "
		"via recv (socket.py)\n"
		"    900 us    0.0%         1      900 us              [lock] in loop (requests/api.py), "
		"via wait (threading.py)\n\n"));
	free(text);
	text = shown(p, &(struct output_options){.by_line = true});
	assert_non_null(strstr(text, " in app.py:7  main, via socket.py:1  recv\n"));
	free(text);
	/* So wide that there is room for the function that waits without its file, or not for the numbers. */
	text = shown(p, &(struct output_options){.width = 100});
	assert_non_null(strstr(text, "\n    time   share  waits      mean   longest  wait\n"
				     " 2.500 s  100.0%      2   1.250 s   2.000 s  [network: tcp 10.0.0.5:80] in main "
				     "(app.py), via recv\n"));
	free(text);
	text = shown(p, &(struct output_options){.width = 80});
	assert_non_null(strstr(text,
			       "\n  share  waits      mean  wait (a wider terminal shows: time, longest)\n"
			       " 100.0%      2   1.250 s  [network: tcp 10.0.0.5:80] in main (app.py), via recv\n"));
	free(text);
	text = shown(p, &(struct output_options){.width = 50});
	assert_non_null(strstr(text, "\n  share  wait\n 100.0%  [network: tcp 10.0.0.5:80] in main, via recv\n"));
	free(text);
	profile_free(p);
}

/* main of the program calls JSONDecoder.decode_all and dump of the standard library, other calls dump; run calls
 * nobody's. */
static struct profile *libraries(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), run = on(p, PROFILE_ROOT, "run", "threading.py", 1);
	uint32_t main = on(p, run, "main", "app.py", 7), other = on(p, run, "other", "app.py", 9);

	assert_int_equal(profile_set_origin(p, "json.py", PROFILE_STDLIB), 0);
	assert_int_equal(profile_set_origin(p, "threading.py", PROFILE_STDLIB), 0);
	take_in(p, on(p, main, "dump", "json.py", 1), owner, 30);
	take_in(p, on(p, other, "dump", "json.py", 1), owner, 20);
	take_in(p, on(p, main, "JSONDecoder.decode_all", "json.py", 2), owner, 15);
	take_in(p, other, owner, 25);
	take_in(p, run, owner, 10);
	return p;
}

static void test_libraries_have_their_own_callers(void **unused)
{
	struct profile *p = libraries();
	char *text = shown(p, &(struct output_options){0});

	(void)unused;
	assert_string_equal(text,
			    "    self   self%     total  total%  function\n"
			    "      50   50.0%        50   50.0%  dump (json.py), from main (app.py) and 1 more\n"
			    "      25   25.0%        45   45.0%  other (app.py)\n"
			    "      15   15.0%        15   15.0%  JSONDecoder.decode_all (json.py), from main (app.py)\n"
			    "      10   10.0%       100  100.0%  run (threading.py)\n"
			    "       0    0.0%        45   45.0%  main (app.py)\n");
	free(text);
	text = shown(p, &(struct output_options){.by_line = true});
	assert_non_null(strstr(text, "  json.py:1  dump, from app.py:7  main and 1 more\n"));
	free(text);
	/* The library's file gives way to the caller's name, then its name, until there is room for one only. */
	text = shown(p, &(struct output_options){.width = 78});
	assert_non_null(strstr(text, "  JSONDecoder.decode_all, from main\n"));
	assert_non_null(strstr(text, "  dump (json.py), from main and 1 more\n"));
	free(text);
	text = shown(p, &(struct output_options){.width = 46});
	assert_non_null(strstr(text, "  JSONDecod...all, from main\n") ?: strstr(text, "  JSONDecoder.decode_all\n"));
	free(text);
	text = shown(p, &(struct output_options){.by_state = true});
	assert_string_equal(text, "  self  on CPU  function\n"
				  " 30.0%   30.0%  main (app.py), via dump (json.py)\n"
				  " 25.0%   25.0%  other (app.py)\n"
				  " 20.0%   20.0%  other (app.py), via dump (json.py)\n"
				  " 15.0%   15.0%  main (app.py), via JSONDecoder.decode_all (json.py)\n"
				  " 10.0%   10.0%  run (threading.py)\n");
	free(text);
	profile_free(p);
}

static void test_orders(void **unused)
{
	struct profile *p = libraries();
	char *text = shown(p, &(struct output_options){.sort = OUTPUT_SORT_OWN, .rows = 3});

	(void)unused;
	assert_string_equal(text, "     own    own%      self   self%     total  total%  function\n"
				  "      45   45.0%        25   25.0%        45   45.0%  other (app.py)\n"
				  "      45   45.0%         0    0.0%        45   45.0%  main (app.py)\n"
				  "      10   10.0%        10   10.0%       100  100.0%  run (threading.py)\n"
				  "and 2 functions more (--limit)\n");
	free(text);
	text = shown(p, &(struct output_options){.sort = OUTPUT_SORT_OWN, .rows = 1, .width = 50});
	assert_non_null(strstr(text, "  own%   self%  total%  function\n 45.0%   25.0%   45.0%  other (app.py)\n"));
	free(text);
	text = shown(p, &(struct output_options){.sort = OUTPUT_SORT_TOTAL, .rows = 2});
	assert_non_null(strstr(text, "  total%  function\n"
				     "      10   10.0%       100  100.0%  run (threading.py)\n"
				     "      50   50.0%        50   50.0%  dump (json.py)"));
	free(text);
	profile_free(p);
}

static void test_waits_by_their_number(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), f = on(p, PROFILE_ROOT, "f", "a.py", 1);
	char *text;

	(void)unused;
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	assert_int_equal(profile_add_time(p, waiting(p, f, "sleep", "[sleep]"), owner, PROFILE_NONE, 900, 1), 0);
	assert_int_equal(profile_add_time(p, waiting(p, f, "lock", "[lock]"), owner, PROFILE_NONE, 50, 5), 0);
	text = shown(p, &(struct output_options){.sort = OUTPUT_SORT_COUNT});
	assert_true(strstr(text, "[lock]") < strstr(text, "[sleep]"));
	free(text);
	text = shown(p, &(struct output_options){0});
	assert_true(strstr(text, "[lock]") > strstr(text, "[sleep]"));
	free(text);
	profile_free(p);
}

static void test_columns(void **unused)
{
	struct profile *p = wall();
	char *text = shown(p, &(struct output_options){.by_state = true});

	(void)unused;
	assert_string_equal(text, "  self  on CPU   sleep    lock  function\n"
				  " 55.0%   10.0%   40.0%    5.0%  f (a.py)\n"
				  " 30.0%       -   30.0%       -  g (b.py)\n"
				  " 15.0%       -   15.0%       -  [sleep]\n");
	free(text);
	text = shown(p, &(struct output_options){.by_state = true, .rows = 1});
	assert_non_null(strstr(text, "f (a.py)\nand 2 more (--limit)\n"));
	free(text);
	/* No room for all columns: the last ones are one. */
	text = shown(p, &(struct output_options){.by_state = true, .width = 42});
	assert_string_equal(text, "  self  on CPU    rest  function\n"
				  " 55.0%   10.0%   45.0%  f (a.py)\n"
				  " 30.0%       -   30.0%  g (b.py)\n"
				  " 15.0%       -   15.0%  [sleep]\n");
	free(text);
	profile_free(p);
	p = new_profile();
	text = shown(p, &(struct output_options){.by_state = true});
	assert_non_null(strstr(text, "No sample"));
	free(text);
	profile_free(p);
}

/* On a narrow terminal rows that look alike are added up where they can be, and else have numbers. */
static void test_rows_that_look_alike(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x"), main = on(p, PROFILE_ROOT, "handles_the_request_of_a_client", "app.py", 7);
	uint32_t get;
	char *text;

	(void)unused;
	assert_int_equal(profile_set_origin(p, "lib.py", PROFILE_STDLIB), 0);
	get = on(p, main, "Connection.get_from_server", "lib.py", 1);
	take_in(p, waiting(p, get, "sleep", "[sleep]"), owner, 50);
	take_in(p, waiting(p, on(p, main, "Connection.set", "lib.py", 2), "lock", "[lock]"), owner, 30);
	take_in(p, get, owner, 20);
	text = shown(p, &(struct output_options){.by_state = true, .width = 80});
	assert_string_equal(text, "  self  on CPU   sleep    lock  function\n"
				  "100.0%   20.0%   50.0%   30.0%  handles_the_request_of_a_client (app.py)\n");
	free(text);
	text = shown(p, &(struct output_options){.by_state = true});
	assert_non_null(strstr(
		text, " 30.0%       -       -   30.0%  handles_the_request_of_a_client (app.py), via Connection.set"));
	free(text);
	take_in(p, on(p, PROFILE_ROOT, "handles_the_request_of_another_client", "a/app.py", 1), owner, 6);
	take_in(p, on(p, PROFILE_ROOT, "handles_the_request_of_another_client", "b/app.py", 1), owner, 5);
	take_in(p, on(p, PROFILE_ROOT, "handles_the_request_of_another_client", "c/app.py", 1), owner, 4);
	text = shown(p, &(struct output_options){.width = 80});
	assert_non_null(strstr(text, "  handles_the_request_of_another_client\n"));
	assert_non_null(strstr(text, "  handles_the_request_of_another_client #2\n"));
	assert_non_null(strstr(text, "  handles_the_request_of_another_client #3\n"));
	free(text);
	profile_free(p);
}

static void test_line(void **unused)
{
	struct profile *p = new_profile();
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)unused;
	output_states(p, "x: ", out);
	fflush(out);
	assert_int_equal(size, 0);
	profile_add_account(p, PROFILE_ACCOUNT_STATES, "on CPU", "on CPU", 500000000);
	profile_add_account(p, PROFILE_ACCOUNT_STATES, "GIL", "GIL", 0);
	profile_add_account(p, PROFILE_ACCOUNT_STATES, "sleep", "sleep", 1500000000);
	output_states(p, "x: ", out);
	fclose(out);
	assert_string_equal(text, "x: 2.00 thread-seconds: 25.0 % on CPU, 75.0 % sleep\n");
	free(text);
	profile_free(p);
}

/* As many states as functions, as only a file can have them: the table does not become one of all by all. */
static void test_more_states_than_there_are(void **unused)
{
	enum {
		COUNT = 3000
	};
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "x");
	char name[16], *text, *head;
	size_t columns = 0;

	(void)unused;
	for (unsigned i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		take_in(p, waiting(p, on(p, PROFILE_ROOT, name, "a.py", 1), name, "[wait]"), owner, COUNT + 10 - i);
	}
	text = shown(p, &(struct output_options){.by_state = true, .rows = COUNT});
	/* Each with its time: those that have a column of their own, and the others in the one of the rest. */
	assert_non_null(strstr(text, "  rest  function\n"));
	head = strndup(text, strcspn(text, "\n"));
	assert_non_null(head);
	for (const char *at = strtok(head, " "); at; at = strtok(NULL, " "))
		columns++;
	free(head);
	assert_in_range(columns, 10, 100);
	assert_true(strlen(text) < COUNT * 1000ul);
	assert_non_null(strstr(text, "  s2999 (a.py)\n"));
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_have_their_functions),
		cmocka_unit_test(test_suspended_tasks),
		cmocka_unit_test(test_waits_have_the_nearest_own_function),
		cmocka_unit_test(test_libraries_have_their_own_callers),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_waits_by_their_number),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_rows_that_look_alike),
		cmocka_unit_test(test_more_states_than_there_are),
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
