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
	assert_string_equal(text, "wall: 1000 microseconds\n\n"
				  "    self   self%     total  total%  function\n"
				  "     400   40.0%       400   40.0%  [sleep] in f (a.py)\n"
				  "     300   30.0%       300   30.0%  [sleep] in g (b.py)\n"
				  "     150   15.0%       150   15.0%  [sleep]\n"
				  "     100   10.0%       850   85.0%  f (a.py)\n"
				  "      50    5.0%        50    5.0%  [lock] in f (a.py)\n"
				  "       0    0.0%       300   30.0%  g (b.py)\n");
	free(text);
	text = shown(p, &(struct output_options){.by_line = true});
	assert_non_null(strstr(text, "  [sleep] in a.py:1  f\n"));
	free(text);
	profile_free(p);
}

static void test_columns(void **unused)
{
	struct profile *p = wall();
	char *text = shown(p, &(struct output_options){.by_state = true});

	(void)unused;
	assert_string_equal(text, "   own  on CPU   sleep    lock  function\n"
				  " 55.0%   10.0%   40.0%    5.0%  f (a.py)\n"
				  " 30.0%       -   30.0%       -  g (b.py)\n"
				  " 15.0%       -   15.0%       -  [sleep]\n");
	free(text);
	text = shown(p, &(struct output_options){.by_state = true, .rows = 1});
	assert_non_null(strstr(text, "f (a.py)\nand 2 more (--limit)\n"));
	free(text);
	/* No room for all columns: the last ones are one. */
	text = shown(p, &(struct output_options){.by_state = true, .width = 42});
	assert_string_equal(text, "   own  on CPU    rest  function\n"
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
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_more_states_than_there_are),
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
