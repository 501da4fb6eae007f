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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
