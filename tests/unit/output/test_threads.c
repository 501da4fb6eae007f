// SPDX-License-Identifier: Apache-2.0
/* The table of threads in text. */
#include "profiles.h"

static uint32_t thread(struct profile *p, uint32_t owner, int tid, const char *name)
{
	uint32_t i = profile_add_thread(p, owner, tid, name);

	assert_int_not_equal(i, PROFILE_NONE);
	return i;
}

static void take(struct profile *p, uint32_t stack, uint32_t owner, uint32_t of, uint64_t value)
{
	assert_int_equal(profile_add_sample(p, stack, owner, of, value), 0);
}

/* Worker 11 waits in a library that query calls, and runs in render; main 10 runs; 12 sleeps without functions. */
static struct profile *threaded(void)
{
	struct profile *p = new_profile();
	uint32_t first = process(p, 1, "web"), second = process(p, 2, "job");
	uint32_t query = on(p, PROFILE_ROOT, "query", "svc.py", 7), recv = on(p, query, "recv", "socket.py", 1);
	uint32_t worker = thread(p, second, 11, "worker"), main = thread(p, first, 10, "MainThread");

	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "microseconds", 0}), 0);
	assert_int_equal(profile_set_origin(p, "socket.py", PROFILE_STDLIB), 0);
	take(p, profile_add_stack(p, recv, profile_add_wait(p, "network", "[network: tcp db:5432]", 0)), second, worker,
	     600);
	take(p, on(p, PROFILE_ROOT, "render", "svc.py", 9), second, worker, 150);
	take(p, profile_add_stack(p, query, profile_add_wait(p, "GIL", "[GIL]", 0)), second, worker, 50);
	take(p, on(p, PROFILE_ROOT, "main", "svc.py", 20), first, main, 150);
	take(p, profile_add_stack(p, PROFILE_ROOT, profile_add_wait(p, "sleep", "[sleep]", 0)), first,
	     thread(p, first, 12, "idle\n"), 50);
	take(p, on(p, PROFILE_ROOT, "never", "svc.py", 30), first, thread(p, first, 13, "never"), 0);
	return p;
}

static char *shown(const struct profile *p, const struct output_options *options)
{
	size_t size;

	return written_bytes(p, output_text, options, &size);
}

static void test_threads(void **unused)
{
	struct profile *p = threaded();
	char *text = shown(p, &(struct output_options){0});

	(void)unused;
	assert_null(strstr(text, "worker"));
	free(text);
	profile_set_roots(p, PROFILE_ROOT_THREAD);
	text = shown(p, &(struct output_options){0});
	assert_non_null(
		strstr(text, "\n    wall   share  thread           process  states                   hottest function\n"
			     "  800 us   80.0%  worker (11)      job (2)  network 75%, on CPU 19%  query (svc.py)\n"
			     "  150 us   15.0%  MainThread (10)  web (1)  on CPU 100%              main (svc.py)\n"
			     "   50 us    5.0%  idle\\x0a (12)    web (1)  sleep 100%               [sleep]\n\n"));
	free(text);
	text = shown(p, &(struct output_options){.by_line = true, .rows = 1});
	assert_non_null(strstr(text, "  hottest line\n"));
	assert_non_null(strstr(text, "  svc.py:7  query\nand 2 threads more (--limit)\n\n"));
	free(text);
	profile_free(p);
}

static void test_narrow_terminals(void **unused)
{
	struct profile *p = threaded();
	char *text;

	(void)unused;
	profile_set_roots(p, PROFILE_ROOT_THREAD);
	text = shown(p, &(struct output_options){.width = 80});
	assert_non_null(strstr(text, "\n    wall   share  thread           states       hottest function\n"
				     "  800 us   80.0%  worker (11)      network 75%  query (svc.py)\n"));
	free(text);
	text = shown(p, &(struct output_options){.width = 51});
	assert_non_null(strstr(text, "\n    wall   share  thread       hottest function\n"
				     "  800 us   80.0%  worker (11)  query (svc.py)\n"));
	free(text);
	profile_free(p);
}

static void test_one_process_and_no_states(void **unused)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 1, "web"), main = on(p, PROFILE_ROOT, "main", "svc.py", 7);
	char *text;

	(void)unused;
	profile_set_roots(p, PROFILE_ROOT_THREAD);
	take(p, main, owner, PROFILE_NONE, 1);
	text = shown(p, &(struct output_options){0});
	assert_null(strstr(text, "thread"));
	free(text);
	take(p, main, owner, thread(p, owner, 10, "MainThread"), 3);
	text = shown(p, &(struct output_options){0});
	assert_non_null(strstr(text, " samples   share  thread           hottest function\n"
				     "       3   75.0%  MainThread (10)  main (svc.py)\n\n"));
	free(text);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_narrow_terminals),
		cmocka_unit_test(test_one_process_and_no_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
