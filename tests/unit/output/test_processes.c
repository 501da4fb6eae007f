// SPDX-License-Identifier: Apache-2.0
/* What is written of several processes: roots of folded stacks, and the table of processes. */
#include "profiles.h"

static uint32_t in(struct profile *p, int pid, int inner_pid, const char *name, const char *container)
{
	struct profile_process_info info = {.pid = pid, .inner_pid = inner_pid, .name = name, .container = container};
	uint32_t i = profile_add_process(p, &info);

	assert_int_not_equal(i, PROFILE_NONE);
	return i;
}

static void assert_begins(const char *text, const char *want)
{
	if (strncmp(text, want, strlen(want)) != 0)
		assert_string_equal(text, want);
}

static void take_on_thread(struct profile *p, uint32_t stack, uint32_t owner, int tid, const char *name, uint64_t value)
{
	assert_int_equal(profile_add_sample(p, stack, owner, profile_add_thread(p, owner, tid, name), value), 0);
}

/* The process is named as soon as there are two to tell apart. */
static void test_several_processes(void **unused)
{
	struct profile *p = new_profile();
	uint32_t first = process(p, 42, "python3"), second;
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);

	(void)unused;
	take_in(p, s, first, 1);
	assert_folded(p, "f (app.py:3) 1\n");
	second = process(p, 50, "x y;z");
	take_in(p, s, second, 2);
	take_on_thread(p, s, second, 51, "w", 3);
	profile_set_roots(p, PROFILE_ROOT_BY_COUNT | PROFILE_ROOT_THREAD);
	assert_folded(p, "python3 (42);f (app.py:3) 1\n"
			 "x y\\x3bz (50);f (app.py:3) 2\n"
			 "x y\\x3bz (50);w (51);f (app.py:3) 3\n");
	profile_free(p);
}

static void test_roots_that_are_asked_for(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);

	(void)unused;
	take_in(p, s, in(p, 42, 0, "python3", NULL), 1);
	profile_set_roots(p, PROFILE_ROOT_PROCESS);
	assert_folded(p, "python3 (42);f (app.py:3) 1\n");
	profile_set_roots(p, PROFILE_ROOT_CONTAINER | PROFILE_ROOT_THREAD);
	assert_folded(p, "[host];f (app.py:3) 1\n");
	take_in(p, s, in(p, 43, 1, "python3", "we;b"), 2);
	take_on_thread(p, s, in(p, 43, 1, "python3", "we;b"), 44, "t", 3);
	assert_folded(p, "[host];f (app.py:3) 1\n"
			 "we\\x3bb;f (app.py:3) 2\n"
			 "we\\x3bb;t (44);f (app.py:3) 3\n");
	profile_set_roots(p, PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PROCESS | PROFILE_ROOT_THREAD);
	assert_folded(p, "[host];python3 (42);f (app.py:3) 1\n"
			 "we\\x3bb;python3 (43, 1 inside);f (app.py:3) 2\n"
			 "we\\x3bb;python3 (43, 1 inside);t (44);f (app.py:3) 3\n");
	profile_set_roots(p, 0);
	assert_folded(p, "f (app.py:3) 6\n");
	profile_free(p);
}

/* A master that has samples too, a shell that has none, and a parent that has ended. */
static void test_parents(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3), master = process(p, 42, "master"), worker, other;
	const struct profile_process_info of_master = {.pid = 42, .name = "master"};
	const struct profile_process_info of_shell = {.pid = 43, .inner_pid = 2, .name = "sh"};
	char *text;

	(void)unused;
	worker = process(p, 44, "worker");
	other = process(p, 45, "other");
	take_in(p, s, master, 1);
	take_in(p, s, worker, 2);
	take_in(p, s, other, 4);
	assert_int_equal(profile_set_parent(p, worker,
					    profile_add_parent(p, profile_add_parent(p, PROFILE_NONE, &of_master, true),
							       &of_shell, true)),
			 0);
	profile_set_roots(p, PROFILE_ROOT_PROCESS);
	assert_folded(p, "master (42);f (app.py:3) 1\n"
			 "worker (44);f (app.py:3) 2\n"
			 "other (45);f (app.py:3) 4\n");
	profile_set_roots(p, PROFILE_ROOT_CONTAINER | PROFILE_ROOT_PARENTS | PROFILE_ROOT_PROCESS);
	assert_folded(p, "[host];master (42);f (app.py:3) 1\n"
			 "[host];master (42);sh (43, 2 inside, ended);worker (44);f (app.py:3) 2\n"
			 "[host];other (45);f (app.py:3) 4\n");
	take_in(p, on(p, s, "g", "app.py", 4), worker, 1);
	text = written(p, output_text);
	assert_begins(text, "    self     total   share  process, below the one that started it\n"
			    "       1         4   50.0%  master (42)\n"
			    "       0         3   37.5%    sh (43, 2 inside, ended)\n"
			    "       3         3   37.5%      worker (44)\n"
			    "       4         4   50.0%  other (45)\n\n");
	free(text);
	profile_free(p);
}

/* A supervisor with two workers, of which one has started many processes of two programs. */
static void test_many_below_one(void **unused)
{
	enum {
		N = 200
	};
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3), busy = process(p, 2, "worker"), parent;
	const struct profile_process_info first = {.pid = 1, .name = "supervisor"},
					  second = {.pid = 2, .name = "worker"};
	char *text;

	(void)unused;
	parent = profile_add_parent(p, PROFILE_NONE, &first, false);
	take_in(p, s, busy, 1000);
	take_in(p, s, process(p, 3, "worker"), 600);
	assert_int_equal(profile_set_parent(p, busy, parent) ?: profile_set_parent(p, process(p, 3, "worker"), parent),
			 0);
	parent = profile_add_parent(p, parent, &second, false);
	for (int i = 0; i < N; i++) {
		uint32_t child = process(p, 10 + i, i % 4 ? "convert" : "git");

		take_in(p, s, child, i == 1 ? 200 : 1);
		assert_int_equal(profile_set_parent(p, child, parent), 0);
	}
	profile_set_roots(p, PROFILE_ROOT_PARENTS | PROFILE_ROOT_PROCESS);
	text = written(p, output_text);
	assert_begins(text, "    self     total   share  process, below the one that started it\n"
			    "       0      1999  100.0%  supervisor (1)\n"
			    "    1000      1399   70.0%    worker (2)\n"
			    "     200       200   10.0%      convert (11)\n"
			    "     149       149    7.5%      convert (149 processes)\n"
			    "      50        50    2.5%      git (50 processes)\n"
			    "     600       600   30.0%    worker (3)\n\n");
	free(text);
	profile_set_roots(p, PROFILE_ROOT_PROCESS);
	text = written(p, output_text);
	assert_begins(text, " samples   share  process\n"
			    "    1000   50.0%  worker (2)\n"
			    "     600   30.0%  worker (3)\n"
			    "     200   10.0%  convert (11)\n"
			    "     149    7.5%  convert (149 processes)\n"
			    "      50    2.5%  git (50 processes)\n\n");
	free(text);
	profile_free(p);
}

/* Processes that are shown as one have no PID. */
static void test_merged(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	char *text;

	(void)unused;
	take_in(p, s, in(p, 0, 0, "worker -c 'a;b'\n", NULL), 1);
	take_in(p, s, in(p, 0, 0, "beat", NULL), 1);
	take_in(p, s, in(p, 0, 0, "worker -c 'a;b'\n", NULL), 4);
	assert_folded(p, "worker -c 'a\\x3bb'\\x0a;f (app.py:3) 5\n"
			 "beat;f (app.py:3) 1\n");
	text = written(p, output_text);
	assert_non_null(strstr(text, "       5   83.3%  worker -c 'a\\x3bb'\\x0a\n"));
	assert_non_null(strstr(text, "       1   16.7%  beat\n"));
	free(text);
	profile_free(p);
}

static void test_no_table_of_one(void **unused)
{
	struct profile *p = new_profile();
	char *text;

	(void)unused;
	take_in(p, on(p, PROFILE_ROOT, "f", "app.py", 3), process(p, 42, "python3"), 1);
	text = written(p, output_text);
	assert_null(strstr(text, "python3"));
	assert_begins(text, "    self");
	free(text);
	profile_free(p);
}

static void test_table(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	uint32_t host = in(p, 42, 0, "python3", NULL), inner = in(p, 5043, 1, "na\xc3\xafve", "web");
	char *text;

	(void)unused;
	take_in(p, s, host, 1);
	take_in(p, s, inner, 5);
	take_in(p, on(p, s, "g", "app.py", 4), inner, 2);
	take_in(p, PROFILE_ROOT, host, 100); /* without frames: in no table */
	text = written(p, output_text);
	assert_string_equal(text, " samples   share  process                 container\n"
				  "       7   87.5%  na\xc3\xafve (5043, 1 inside)  web\n"
				  "       1   12.5%  python3 (42)\n"
				  "\n"
				  "    self   self%     total  total%  function\n"
				  "       6   75.0%         8  100.0%  f (app.py)\n"
				  "       2   25.0%         2   25.0%  g (app.py)\n");
	free(text);
	profile_free(p);
}

/* Without containers there is no column for them; a name longer than others does not push them away. */
static void test_table_widths(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	char *text, name[200];

	(void)unused;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	take_in(p, s, in(p, 1, 0, "a", NULL), 2);
	take_in(p, s, in(p, 0, 0, name, NULL), 1);
	text = written(p, output_text);
	assert_begins(text, " samples   share  process\n"
			    "       2   66.7%  a (1)\n"
			    "       1   33.3%  nnn");
	free(text);
	take_in(p, s, in(p, 0, 0, name, "c;\n"), 1);
	take_in(p, s, in(p, 3, 0, "b", "box"), 10);
	text = written(p, output_text);
	assert_begins(text, " samples   share  process  container\n"
			    "      10   71.4%  b (3)    box\n");
	assert_non_null(strstr(text, "nnn  c\\x3b\\x0a\n"));
	free(text);
	profile_free(p);
}

/* Processes with one name are added up, but the largest; of many names the first ones are shown. */
static void test_long_table(void **unused)
{
	enum {
		N = 2000,
		SHOWN = 20
	};
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	char *text, row[64], name[32];

	(void)unused;
	for (int i = 1; i <= N; i++) {
		snprintf(name, sizeof(name), "program%d", i);
		take_in(p, s, process(p, i, name), (uint64_t)i);
	}
	text = written(p, output_text);
	for (int i = 1; i <= N; i++) {
		snprintf(row, sizeof(row), "  program%d (%d)\n", i, i);
		assert_int_equal(strstr(text, row) != NULL, i > N - SHOWN);
	}
	assert_non_null(strstr(text, "program1981 (1981)\nand 1980 processes more\n\n    self"));
	free(text);
	profile_free(p);
}

/* Up to the number of rows each has its own, however small. */
static void test_short_table(void **unused)
{
	struct profile *p = new_profile();
	uint32_t s = on(p, PROFILE_ROOT, "f", "app.py", 3);
	char *text;

	(void)unused;
	for (int i = 1; i <= 20; i++)
		take_in(p, s, process(p, i, "python3"), i == 20 ? 10000 : 1);
	text = written(p, output_text);
	assert_non_null(strstr(text, "  python3 (1)\n"));
	assert_null(strstr(text, "processes"));
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_processes), cmocka_unit_test(test_roots_that_are_asked_for),
		cmocka_unit_test(test_parents),           cmocka_unit_test(test_merged),
		cmocka_unit_test(test_no_table_of_one),   cmocka_unit_test(test_table),
		cmocka_unit_test(test_table_widths),      cmocka_unit_test(test_long_table),
		cmocka_unit_test(test_many_below_one),    cmocka_unit_test(test_short_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
