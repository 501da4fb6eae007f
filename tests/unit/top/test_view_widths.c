// SPDX-License-Identifier: Apache-2.0
/* What top leaves out of its rows and its line of states where the terminal is narrow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "top/model.h"
#include "top/view.h"

#define LONG_NAME "ConnectionPool.release_connections_that_expired"
#define LONG_FILE "site-packages/database/pool/connections.py"

static const struct top_facts facts = {.target = "process 7", .freq = 99};

/* A profile whose hottest function is the long one, line 1183; origin: whose it is. It is called by handle(). */
static struct profile *profile_of(enum profile_origin origin)
{
	struct profile *p = profile_new();
	uint32_t process = profile_add_process(p, &(struct profile_process_info){.pid = 7, .name = "app"});
	uint32_t caller = profile_add_frame(p, PROFILE_PYTHON, "handle", "app.py", 10, 8);
	uint32_t leaf = profile_add_frame(p, PROFILE_PYTHON, LONG_NAME, LONG_FILE, 1190, 1183);
	uint32_t stack = profile_add_stack(p, profile_add_stack(p, PROFILE_ROOT, caller), leaf);

	assert_int_equal(profile_set_origin(p, LONG_FILE, origin), 0);
	assert_int_equal(profile_add_sample(p, stack, process, PROFILE_NONE, 50), 0);
	return p;
}

static struct top_model *model_of(enum profile_origin origin, const struct top_states *states)
{
	struct top_model *m = top_model_new();
	struct profile *p = profile_of(origin);

	assert_int_equal(top_model_begin(m, 1), 0);
	assert_int_equal(top_model_add(m, p), 0);
	assert_int_equal(top_model_add_thread(m, 7, 8, "comm", states), 0);
	assert_int_equal(top_model_end(m), 0);
	profile_free(p);
	return m;
}

/* Asserts that a line of the view has that end, and fits. */
static void assert_line(const struct top_model *m, enum top_table table, size_t columns, size_t line, const char *end)
{
	struct top_choice choice = {.table = table};
	struct top_view view;
	const char *text;

	assert_int_equal(top_view_draw(m, &facts, &choice, columns, 24, &view), 0);
	text = view.lines[line].text;
	assert_true(text_width(text) <= columns);
	assert_true(strlen(text) >= strlen(end));
	assert_string_equal(text + strlen(text) - strlen(end), end);
	top_view_free(&view);
}

static void test_rows_keep_file_and_line(void **unused)
{
	const struct top_states none = {0};
	struct top_model *own = model_of(PROFILE_OWN, &none), *library = model_of(PROFILE_THIRD_PARTY, &none);
	(void)unused;

	assert_line(own, TOP_FUNCTIONS, 200, 4, "   " LONG_NAME " (" LONG_FILE ":1183)");
	assert_line(own, TOP_FUNCTIONS, 110, 4, "   " LONG_NAME " (...l/connections.py:1183)");
	assert_line(own, TOP_FUNCTIONS, 80, 4, "   ...ons_that_expired (...connections.py:1183)");
	assert_line(own, TOP_LINES, 80, 4, "   ...ons_that_expired (...connections.py:1190)");
	assert_line(own, TOP_FUNCTIONS, 40, 4, "   ...red (...ions.py:1183)");
	assert_line(library, TOP_FUNCTIONS, 200, 4, LONG_NAME " (" LONG_FILE ":1183), from handle (app.py)");
	assert_line(library, TOP_FUNCTIONS, 90, 4, "   ..._that_expired (...connections.py:1183), from handle");
	/* The caller goes before what is left of the name tells nothing. */
	assert_line(library, TOP_FUNCTIONS, 80, 4, "   ...ons_that_expired (...connections.py:1183)");
	assert_line(library, TOP_FUNCTIONS, 40, 4, "   ...red (...ions.py:1183)");
	top_model_free(own);
	top_model_free(library);
}

static void test_stacks_keep_file_and_line(void **unused)
{
	const struct top_states none = {0};
	struct top_model *m = model_of(PROFILE_OWN, &none);
	struct profile *p = profile_of(PROFILE_OWN);
	const struct top_facts with = {.target = "process 7", .freq = 99, .all = p};
	struct top_choice choice = {.table = TOP_FUNCTIONS};
	struct top_view view;
	(void)unused;

	assert_true(top_view_choose(m, &choice));
	choice.page = TOP_PAGE_STACKS;
	assert_int_equal(top_view_draw(m, &with, &choice, 60, 24, &view), 0);
	assert_string_equal(view.lines[3].text, "stacks of the last 0 s with ...ease_connections_that_expired");
	assert_string_equal(view.lines[5].text, "  handle (app.py:10)");
	assert_string_equal(view.lines[6].text, "  ...lease_connections_that_expired (...connections.py:1190)");
	top_view_free(&view);
	choice = (struct top_choice){.page = TOP_PAGE_FLAME};
	for (int i = 0; i < 3; i++)
		assert_int_equal(top_flame_move(&choice.flame, p, TOP_FLAME_CALLED), 0);
	assert_int_equal(top_view_draw(m, &with, &choice, 80, 24, &view), 0);
	assert_string_equal(view.lines[3].text,
			    "last 0 s: 100.0 %, 0.51 s, 0.51 s self: ...ions_that_expired (...connections.py)");
	top_view_free(&view);
	/* A cell leaves the class out. */
	assert_int_equal(top_view_draw(m, &with, &choice, 40, 24, &view), 0);
	assert_string_equal(view.lines[6].text, " release_connections_that_expired       ");
	top_view_free(&view);
	profile_free(p);
	top_model_free(m);
}

static void test_threads_keep_their_numbers(void **unused)
{
	const struct top_states none = {0};
	struct top_model *m = model_of(PROFILE_OWN, &none);
	(void)unused;

	assert_int_equal(top_model_begin(m, 1), 0);
	assert_int_equal(top_model_add_thread(m, 7, 1234567, "ThreadPoolExecutor-0_12", &none), 0);
	assert_int_equal(top_model_end(m), 0);
	assert_line(m, TOP_THREADS, 80, 4, "   ThreadPoolExecutor-0_12 1234567 of app 7");
	assert_line(m, TOP_THREADS, 50, 4, "   ...utor-0_12 1234567 of app 7");
	top_model_free(m);
}

static void test_states_are_not_cut(void **unused)
{
	const struct top_states states = {.ns = {[PYBPF_STATE_RUNNING] = 301000000,
						 [PYBPF_STATE_QUEUED] = 69000000,
						 [PYBPF_STATE_GIL] = 30000000,
						 [PYBPF_STATE_LOCK] = 60000000,
						 [PYBPF_STATE_NETWORK] = 290000000,
						 [PYBPF_STATE_SLEEP] = 250000000}};
	struct top_model *m = model_of(PROFILE_OWN, &states);
	(void)unused;

	assert_line(m, TOP_FUNCTIONS, 120, 2,
		    "1 thread's time: 30.1 % on CPU, 6.9 % waiting for a CPU, 29.0 % network, 25.0 % sleep, 6.0 % "
		    "lock, 3.0 % "
		    "GIL");
	assert_line(m, TOP_FUNCTIONS, 80, 2,
		    "1 thread's time: 30% on CPU, 7% for a CPU, 29% network, 25% sleep, 9% more");
	assert_line(m, TOP_FUNCTIONS, 90, 2,
		    "1 thread's time: 30% on CPU, 7% for a CPU, 29% network, 25% sleep, 6% lock, 3% GIL");
	assert_line(m, TOP_FUNCTIONS, 70, 2, "1 thread's time: 30% on CPU, 7% for a CPU, 29% network, 34% more");
	assert_line(m, TOP_FUNCTIONS, 40, 2, "1 thread's time: 30% on CPU, 70% more");
	top_model_free(m);
}

static void test_sums_are_not_cut(void **unused)
{
	const struct top_states none = {0};
	struct top_model *m = model_of(PROFILE_OWN, &none);
	(void)unused;

	top_model_count(m, 1234567, 1234517);
	assert_line(m, TOP_FUNCTIONS, 90, 1,
		    "last 1.0 s: 50.5 % of one CPU, 50 samples, 1234517 lost; all: 50 samples, 1234517 lost");
	assert_line(m, TOP_FUNCTIONS, 80, 1, "1.0 s: 51% of one CPU, 50 samples, 1234517 lost; all: 50, 1234517 lost");
	assert_line(m, TOP_FUNCTIONS, 60, 1, "1.0 s: 51% of one CPU, 50 samples, 1234517 lost");
	assert_line(m, TOP_FUNCTIONS, 40, 1, "51% of one CPU, 50 samples, 1234517 lost");
	top_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_keep_file_and_line),    cmocka_unit_test(test_stacks_keep_file_and_line),
		cmocka_unit_test(test_threads_keep_their_numbers), cmocka_unit_test(test_states_are_not_cut),
		cmocka_unit_test(test_sums_are_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
