// SPDX-License-Identifier: Apache-2.0
/* Which waits are those of pools and loops without work, and what becomes of them where they are folded. */
#include <stdbool.h>

#include "profiles.h"
#include "profile/edit.h"
#include "profile/idle.h"

#define THREAD  "_bootstrap threading.py;_bootstrap_inner threading.py;"
#define RUN     THREAD "run threading.py;"
#define SERVES  "process_request_thread socketserver.py;finish_request socketserver.py;handle http/server.py;"
#define CLIENTS "[network: tcp clients of :8000]"
#define ASYNC   "run asyncio/runners.py;run_forever asyncio/base_events.py;"

/*
 * Adds a stack of a text: functions and their files, the root first, separated by semicolons. A file that begins with
 * an exclamation mark is the program's own.
 */
static uint32_t stacked(struct profile *p, const char *text)
{
	char *copy = strdup(text), *rest = copy, *frame;
	uint32_t stack = PROFILE_ROOT;

	while ((frame = strsep(&rest, ";"))) {
		char *name = strsep(&frame, " ");
		bool own = frame[0] == '!';

		stack = on(p, stack, name, frame + own, 7);
		assert_int_equal(profile_set_origin(p, frame + own, own ? PROFILE_OWN : PROFILE_STDLIB), 0);
	}
	free(copy);
	return stack;
}

static uint32_t waiting(struct profile *p, const char *text, const char *state, const char *wait)
{
	uint32_t stack = profile_add_stack(p, stacked(p, text), profile_add_wait(p, state, wait, 0));

	assert_int_not_equal(stack, PROFILE_NONE);
	return stack;
}

static bool is_idle(const char *text, const char *state, const char *wait)
{
	struct profile *p = new_profile();
	uint32_t stack = waiting(p, text, state, wait);
	bool *idle = profile_idle_stacks(p), found;

	assert_non_null(idle);
	assert_false(idle[PROFILE_ROOT]);
	found = idle[stack];
	free(idle);
	profile_free(p);
	return found;
}

static const struct {
	const char *stack, *state, *wait;
	bool idle;
} cases[] = {
	/* By names with and without their class, and by files with and without their folders. */
	{RUN "_worker concurrent/futures/thread.py", "lock", "[lock]", true},
	{RUN "_worker /usr/lib/python3.13/concurrent/futures/thread.py", "lock", "[lock]", true},
	{RUN "_worker concurrent/futures/thread.py;get queue.py;wait threading.py", "lock", "[lock]", true},
	{RUN "_worker concurrent/futures/thread.py;Queue.get queue.py;Condition.wait threading.py", "lock", "[lock]",
	 true},
	/* The program's own pool has another file, or is in another's place. */
	{RUN "_worker !thread.py;get queue.py;wait threading.py", "lock", "[lock]", false},
	{RUN "_worker !my/concurrent/futures/thread.py", "lock", "[lock]", false},
	{RUN "_worker myconcurrent/futures/thread.py", "lock", "[lock]", false},
	{RUN "a_worker concurrent/futures/thread.py", "lock", "[lock]", false},
	/* What the pool works on, also where the program has no function in it. */
	{RUN "_worker concurrent/futures/thread.py;run concurrent/futures/thread.py;job !app.py", "lock", "[lock]",
	 false},
	{RUN "_worker concurrent/futures/thread.py;run concurrent/futures/thread.py;get queue.py;wait threading.py",
	 "lock", "[lock]", false},
	{RUN "_worker concurrent/futures/thread.py;read !app.py;get queue.py;wait threading.py", "lock", "[lock]",
	 false},
	{"worker multiprocessing/pool.py;get multiprocessing/queues.py", "pipe", "[pipe: read]", true},
	{"worker multiprocessing/pool.py;mapstar multiprocessing/pool.py;get multiprocessing/queues.py", "pipe",
	 "[pipe: read]", false},
	/* A call of C, such as time.sleep() as the job. */
	{"worker multiprocessing/pool.py", "sleep", "[sleep]", false},
	{"worker multiprocessing/pool.py", "lock", "[lock]", true},
	/* Not asleep for work. */
	{RUN "_worker concurrent/futures/thread.py", "GIL", "[GIL: held in f]", false},
	{RUN "_worker concurrent/futures/thread.py", "waiting for a CPU", "[waiting for a CPU]", false},
	{RUN "_worker concurrent/futures/thread.py", "lock", "[asleep with the GIL: lock]", false},
	{RUN "_worker concurrent/futures/thread.py;get queue.py", "lock", "[lock]", false},
	/* The program's own functions that wait. */
	{RUN "consumer !app.py;get queue.py;wait threading.py", "lock", "[lock]", false},
	{RUN "acceptor !app.py;accept socket.py", "network", "[network: tcp on 0.0.0.0:80]", false},
	{"<module> !app.py;join threading.py", "lock", "[lock]", false},
	{"_shutdown threading.py;join threading.py;_wait_for_tstate_lock threading.py", "lock", "[lock]", true},
	/* Threads of libraries that take jobs, and do nothing else; others wait for what somebody else has. */
	{RUN "send lib/sender.py;get queue.py;wait threading.py", "lock", "[lock]", true},
	{THREAD "run lib/sender.py;send lib/sender.py;get Queue.py;wait threading.py", "lock", "[lock]", true},
	{THREAD "run lib/sender.py;get queue.py;wait threading.py", "lock", "[lock]", true},
	{RUN "send lib/sender.py;connect lib/pool.py;get queue.py;wait threading.py", "lock", "[lock]", false},
	{"main !app.py;checkout lib/pool.py;get queue.py;wait threading.py", "lock", "[lock]", false},
	{RUN "transfer ftplib.py;accept socket.py", "network", "[network: tcp on 0.0.0.0:80]", true},
	{RUN "fetch !app.py;transfer ftplib.py;accept socket.py", "network", "[network: tcp on 0.0.0.0:80]", false},
	/* Servers. */
	{"main !app.py;serve_forever socketserver.py;select selectors.py", "network", "[network: tcp on 0.0.0.0:80]",
	 true},
	{"main !app.py;serve_forever SocketServer.py;_eintr_retry SocketServer.py", "poll", "[poll: select]", true},
	{"run gunicorn/arbiter.py;run_for_one gunicorn/workers/sync.py;wait gunicorn/workers/sync.py", "poll",
	 "[poll: select]", true},
	{"run gunicorn/arbiter.py;handle gunicorn/workers/sync.py;app !app.py;select selectors.py", "poll",
	 "[poll: 2 descriptors]", false},
	/* Loops: what comes over connections that they accept, and later, is work; answers are not. */
	{"<module> !app.py;" ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll: epoll]",
	 true},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll: epoll until tcp on [::]:80]",
	 true},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll: epoll until tcp clients of :80]",
	 true},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll: epoll until unix]", true},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll: epoll until tcp 10.0.0.5:5432]",
	 false},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll: epoll until udp 10.0.0.2:53]",
	 false},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll",
	 "[poll: epoll until unix /run/postgresql/.s.PGSQL.5432]", false},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll: epoll until a pipe]", false},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "network", "[network: tcp 10.0.0.5:5432]",
	 false},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "pipe", "[pipe: read]", false},
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "network", "[network: tcp on 0.0.0.0:80]", true},
	/* As with --wait-detail=none. */
	{ASYNC "_run_once asyncio/base_events.py;select selectors.py", "poll", "[poll]", false},
	{"main !app.py;run asyncio/runners.py", "poll", "[poll: epoll]", true},
	{"run gevent/hub.py", "poll", "[poll: epoll]", true},
	{"run gevent/hub.py", "poll", "[poll: epoll until tcp 10.0.0.5:5432]", false},
	/* A loop within a job waits for that. */
	{RUN "_worker concurrent/futures/thread.py;run concurrent/futures/thread.py;job !app.py;" ASYNC
	     "_run_once asyncio/base_events.py;select selectors.py",
	 "poll", "[poll: epoll]", false},
	{RUN "handler_thread waitress/task.py;view !app.py;run asyncio/runners.py", "poll", "[poll: epoll]", false},
	/* The first line of a request is waited for between two of them, all else within one. */
	{RUN SERVES "handle_one_request http/server.py;readinto socket.py", "network", CLIENTS, true},
	{RUN SERVES "handle_one_request http/server.py;readinto socket.py;recv_into ssl.py;read ssl.py", "network",
	 CLIENTS, true},
	{RUN SERVES "handle_one_request BaseHTTPServer.py;readline socket.py", "network", CLIENTS, true},
	{RUN SERVES "handle wsgiref/simple_server.py;readinto socket.py", "network", CLIENTS, true},
	{RUN SERVES "handle_one_request werkzeug/serving.py;readinto socket.py", "network", CLIENTS, true},
	{RUN SERVES "handle_one_request http/server.py;parse_request http/server.py;parse_headers http/client.py;"
		    "readinto socket.py",
	 "network", CLIENTS, false},
	{RUN SERVES "handle_one_request http/server.py;do_POST !app.py;readinto socket.py", "network", CLIENTS, false},
	{RUN SERVES "handle_one_request http/server.py;do_POST http/server.py;readinto socket.py", "network", CLIENTS,
	 false},
	{RUN SERVES "handle_one_request !app.py;readinto socket.py", "network", CLIENTS, false},
	/* Tasks of a server that wait for its end. */
	{"serve uvicorn/server.py;main_loop uvicorn/server.py;sleep asyncio/tasks.py", "awaits", "[awaits: Future]",
	 true},
	{"main uvicorn/lifespan/on.py;app !app.py;receive uvicorn/lifespan/on.py;get asyncio/queues.py", "awaits",
	 "[awaits: Future]", true},
	{"main !app.py;serve_forever asyncio/base_events.py", "awaits", "[awaits: Future]", true},
	{"main !app.py;sleep asyncio/tasks.py", "awaits", "[awaits: Future]", false},
	{"main !app.py;get asyncio/queues.py", "awaits", "[awaits: Future]", false},
	/* A forked child has a loop of its own, which is idle whatever job of its parent forked it. */
	{"main multiprocessing/forkserver.py;_serve_one multiprocessing/forkserver.py;main !app.py;" ASYNC
	 "_run_once asyncio/base_events.py;select selectors.py",
	 "poll", "[poll: epoll]", true},
	/* One's own loop, and what is no loop at all. */
	{"<module> !app.py;_run_once !loop.py;select selectors.py", "poll", "[poll: epoll]", false},
	{"<module> !app.py;select selectors.py", "poll", "[poll: epoll]", false},
	{"select selectors.py", "poll", "[poll: epoll]", false},
};

static void test_places(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (is_idle(cases[i].stack, cases[i].state, cases[i].wait) != cases[i].idle)
			fail_msg("%s;%s: not %s", cases[i].stack, cases[i].wait, cases[i].idle ? "idle" : "busy");
	}
}

/* Kernel functions before the wait, and who ended it behind. */
static void test_what_is_around_a_wait(void **unused)
{
	struct profile *p = new_profile();
	uint32_t stack = stacked(p, RUN "_worker concurrent/futures/thread.py"), waker;
	bool *idle;

	(void)unused;
	stack = profile_add_stack(
		p, stack, profile_add_frame(p, PROFILE_KERNEL, "futex_wait", "", PROFILE_NO_LINE, PROFILE_NO_LINE));
	stack = profile_add_stack(p, stack, profile_add_wait(p, "lock", "[lock]", 0));
	waker = profile_add_stack(p, stack, profile_add_wait(p, "lock", "[woken by: python (7)]", 7));
	idle = profile_idle_stacks(p);
	assert_non_null(idle);
	assert_true(idle[stack]);
	assert_true(idle[waker]);
	assert_false(idle[profile_stack_at(p, stack)->parent]);
	free(idle);
	profile_free(p);
}

/* Profiles of before origins were known have names alone. */
static void test_without_origins(void **unused)
{
	struct profile *p = new_profile();
	uint32_t worker = waiting(p, RUN "_worker !concurrent/futures/thread.py", "lock", "[lock]");
	uint32_t own = waiting(p, "consumer !app.py;get !queue.py;wait !threading.py", "lock", "[lock]");
	bool *idle;

	(void)unused;
	for (uint32_t i = 0; i < profile_frame_count(p); i++)
		assert_int_equal(profile_set_origin(p, profile_string(p, profile_frame_at(p, i)->file), PROFILE_OWN),
				 0);
	idle = profile_idle_stacks(p);
	assert_non_null(idle);
	assert_true(idle[worker]);
	assert_false(idle[own]);
	free(idle);
	profile_free(p);
}

static struct profile *service(void)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "web");
	uint32_t worker = waiting(p, RUN "_worker concurrent/futures/thread.py", "lock", "[lock]");
	uint32_t tracker = waiting(p, "main multiprocessing/resource_tracker.py", "pipe", "[pipe: read]");
	uint32_t query = waiting(p, RUN "query !app.py;recv lib/db.py", "network", "[network: tcp 10.0.0.5:5432]");

	take_in(p, worker, owner, 100);
	take_in(p, tracker, owner, 20);
	take_in(p, query, owner, 3);
	return p;
}

static void assert_edited(const struct profile_edit *edit, const char *folded)
{
	struct profile *from = service(), *to = new_profile();
	struct error error;

	assert_int_equal(profile_edit_add(to, from, edit, &error), 0);
	assert_folded(to, folded);
	assert_true(edit->focus.count || profile_total(to) == profile_total(from));
	profile_free(to);
	profile_free(from);
}

static void test_folded(void **unused)
{
	struct profile_edit edit = {.fold_idle = true};

	(void)unused;
	/* The state of each stays: two stacks with one name. */
	assert_edited(&edit, "[waiting for work] 100\n"
			     "[waiting for work] 20\n"
			     "_bootstrap (threading.py:7);_bootstrap_inner (threading.py:7);run (threading.py:7);"
			     "query (app.py:7);recv (lib/db.py:7);[network: tcp 10.0.0.5:5432] 3\n");
	/* Places are told by the functions of libraries, which are then left out. */
	edit.own_only = true;
	assert_edited(&edit, "[waiting for work] 100\n"
			     "[waiting for work] 20\n"
			     "query (app.py:7);[network: tcp 10.0.0.5:5432] 3\n");
	assert_int_equal(profile_edit_add_text(&edit.focus, "_worker"), 0);
	assert_edited(&edit, "[waiting for work] 100\n");
	profile_edit_free(&edit);
}

static void test_last_row(void **unused)
{
	struct profile *from = service(), *to = new_profile();
	const struct profile_edit edit = {.fold_idle = true};
	struct error error;
	char *text;
	size_t size;

	(void)unused;
	assert_int_equal(profile_edit_add(to, from, &edit, &error), 0);
	text = written_bytes(to, output_text, &(struct output_options){0}, &size);
	assert_true(strstr(text, " 97.6%  [waiting for work] in idle pools and loops (--idle shows each)\n\n") >
		    strstr(text, "  2.4%  [network: tcp 10.0.0.5:5432] in query (app.py), via recv (lib/db.py)\n"));
	assert_non_null(strstr(text, "[network"));
	assert_null(strstr(text, "_worker"));
	free(text);
	/* It is there, however few rows there are. */
	text = written_bytes(to, output_text, &(struct output_options){.rows = 1}, &size);
	assert_non_null(
		strstr(text, "[waiting for work] in idle pools and loops (--idle shows each)\nand 1 wait more "));
	free(text);
	text = written_bytes(to, output_text, &(struct output_options){.by_state = true}, &size);
	assert_true(strstr(text, "  [waiting for work]\n") > strstr(text, "query (app.py)"));
	free(text);
	profile_free(to);
	profile_free(from);
}

/* Suspended tasks have a row of their own: their time is of no thread, and in no wait that is counted. */
static void test_row_of_tasks(void **unused)
{
	struct profile *from = service(), *to = new_profile();
	const struct profile_edit edit = {.fold_idle = true};
	uint32_t task = waiting(from, "serve uvicorn/server.py;main_loop uvicorn/server.py;sleep asyncio/tasks.py",
				"awaits", "[awaits: Future]");
	struct error error;
	char *text;
	size_t size;

	(void)unused;
	take_in(from, task, profile_samples(from, &size)->process, 123);
	assert_int_equal(profile_edit_add(to, from, &edit, &error), 0);
	text = written_bytes(to, output_text, &(struct output_options){0}, &size);
	assert_non_null(strstr(text, " 50.0%  [waiting for work] of suspended tasks (--idle shows each)\n"));
	assert_non_null(strstr(text, " 48.8%  [waiting for work] in idle pools and loops (--idle shows each)\n\n"));
	free(text);
	profile_free(to);
	profile_free(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),          cmocka_unit_test(test_what_is_around_a_wait),
		cmocka_unit_test(test_without_origins), cmocka_unit_test(test_folded),
		cmocka_unit_test(test_row_of_tasks),    cmocka_unit_test(test_last_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
