// SPDX-License-Identifier: Apache-2.0
/* The idle places of Python's pools, servers and event loops, from 2.7 on, and of those that are used most. */
#include "profile/idle.h"

#include <stdlib.h>
#include <string.h>

#include "profile/wait_words.h"

enum role {
	NO_ROLE,
	PASSES, /* waits for its caller: that decides */
	POOL,   /* waits for work of a pool or server, and then does it */
	WATCH,  /* waits for those that do it, or for its own end */
	LOOP,   /* waits for work, and for answers: as asks_for() tells */
	TAKES,  /* takes jobs or connections, which is work for a library's thread that does nothing else */
	BEGINS, /* begins a thread */
	SERVES, /* does a piece of work: a loop in it waits for that */
};

struct place {
	const char *name, *file; /* the last parts of a qualified name, and of a path */
	enum role role;
	const char *itself; /* states in which it waits itself, with spaces; NULL: only functions that it calls do */
};

static const struct place places[] = {
	/* What waits in Python's own library. */
	{"get", "queue.py", TAKES, NULL},
	{"get", "Queue.py", TAKES, NULL},
	{"wait", "threading.py", PASSES, "lock sleep"},
	{"join", "threading.py", PASSES, "lock"},
	{"_wait_for_tstate_lock", "threading.py", PASSES, "lock"},
	{"select", "selectors.py", PASSES, "poll network pipe sleep"},
	{"_eintr_retry", "SocketServer.py", PASSES, "poll network"},
	{"accept", "socket.py", TAKES, "network"},
	{"accept", "ssl.py", TAKES, NULL},
	{"readinto", "socket.py", PASSES, "network"},
	{"readline", "socket.py", PASSES, "network"},
	{"recv_into", "ssl.py", PASSES, NULL},
	{"read", "ssl.py", PASSES, "network"},
	{"accept", "multiprocessing/connection.py", PASSES, NULL},
	{"wait", "multiprocessing/connection.py", PASSES, NULL},
	{"poll", "multiprocessing/connection.py", PASSES, NULL},
	{"_poll", "multiprocessing/connection.py", PASSES, NULL},
	{"recv", "multiprocessing/connection.py", PASSES, NULL},
	{"recv_bytes", "multiprocessing/connection.py", PASSES, NULL},
	{"_recv_bytes", "multiprocessing/connection.py", PASSES, NULL},
	{"_recv", "multiprocessing/connection.py", PASSES, "pipe network"},
	{"get", "multiprocessing/queues.py", PASSES, "pipe lock"},
	{"__enter__", "multiprocessing/synchronize.py", PASSES, "lock"},
	{"join", "multiprocessing/process.py", PASSES, NULL},
	{"wait", "multiprocessing/popen_fork.py", PASSES, NULL},
	{"poll", "multiprocessing/popen_fork.py", PASSES, "child"},
	{"wait", "multiprocessing/forking.py", PASSES, NULL},
	{"poll", "multiprocessing/forking.py", PASSES, "child"},
	{"poll", "asyncore.py", PASSES, "poll network sleep"},
	{"poll2", "asyncore.py", PASSES, "poll network"},
	{"sleep", "asyncio/tasks.py", PASSES, "awaits"},
	{"get", "asyncio/queues.py", PASSES, "awaits"},
	/* Its pools, servers and loops. */
	{"_bootstrap_inner", "threading.py", BEGINS, NULL},
	{"__bootstrap_inner", "threading.py", BEGINS, NULL},
	{"_worker", "concurrent/futures/thread.py", POOL, "lock"},
	{"run", "concurrent/futures/thread.py", SERVES, NULL},
	{"_python_exit", "concurrent/futures/thread.py", WATCH, NULL},
	{"_process_worker", "concurrent/futures/process.py", POOL, NULL},
	{"_queue_management_worker", "concurrent/futures/process.py", POOL, NULL},
	{"wait_result_broken_or_wakeup", "concurrent/futures/process.py", PASSES, NULL},
	{"run", "concurrent/futures/process.py", POOL, NULL},
	{"worker", "multiprocessing/pool.py", POOL, "lock"},
	{"_wait_for_updates", "multiprocessing/pool.py", PASSES, NULL},
	{"_handle_workers", "multiprocessing/pool.py", POOL, "sleep"},
	{"_handle_tasks", "multiprocessing/pool.py", POOL, "lock"},
	{"_handle_results", "multiprocessing/pool.py", POOL, "lock pipe"},
	{"_feed", "multiprocessing/queues.py", POOL, NULL},
	{"serve_forever", "multiprocessing/managers.py", POOL, NULL},
	{"accepter", "multiprocessing/managers.py", POOL, NULL},
	{"serve_client", "multiprocessing/managers.py", POOL, NULL},
	{"main", "multiprocessing/resource_tracker.py", WATCH, "pipe"},
	{"main", "multiprocessing/semaphore_tracker.py", WATCH, "pipe"},
	{"main", "multiprocessing/forkserver.py", WATCH, NULL},
	{"_exit_function", "multiprocessing/util.py", WATCH, NULL},
	{"_shutdown", "threading.py", WATCH, "lock"},
	{"_exitfunc", "threading.py", WATCH, NULL},
	{"serve_forever", "socketserver.py", POOL, NULL},
	{"serve_forever", "SocketServer.py", POOL, NULL},
	{"handle_request", "socketserver.py", POOL, NULL},
	{"handle_request", "SocketServer.py", POOL, NULL},
	{"finish_request", "socketserver.py", SERVES, NULL},
	{"finish_request", "SocketServer.py", SERVES, NULL},
	/* The functions that read only the first line of a request themselves: all else of it is read by what they
	   call. */
	{"handle_one_request", "http/server.py", POOL, NULL},
	{"handle_one_request", "BaseHTTPServer.py", POOL, NULL},
	{"handle", "wsgiref/simple_server.py", POOL, NULL},
	{"handle_one_request", "werkzeug/serving.py", POOL, NULL},
	{"handle_one_request", "django/core/servers/basehttp.py", POOL, NULL},
	{"dequeue", "logging/handlers.py", PASSES, NULL},
	{"_monitor", "logging/handlers.py", POOL, NULL},
	{"loop", "asyncore.py", LOOP, NULL},
	{"_run_once", "asyncio/base_events.py", LOOP, NULL},
	{"_run", "asyncio/events.py", SERVES, NULL},
	{"serve_forever", "asyncio/base_events.py", WATCH, "awaits"},
	/* uvloop, which has no functions of Python's. */
	{"run", "asyncio/runners.py", LOOP, "poll"},
	{"run", "uvloop/__init__.py", LOOP, "poll"},
	{"run", "uvicorn/server.py", LOOP, "poll"},
	/* Servers of web applications. */
	{"sleep", "gunicorn/arbiter.py", WATCH, "poll pipe"},
	{"wait_for_signals", "gunicorn/arbiter.py", WATCH, "lock"},
	{"wait", "gunicorn/workers/sync.py", POOL, "poll network"},
	{"run", "gunicorn/workers/gthread.py", POOL, NULL},
	{"wait_for_and_dispatch_events", "gunicorn/workers/gthread.py", POOL, NULL},
	{"handle_request", "gunicorn/workers/sync.py", SERVES, NULL},
	{"main_loop", "uvicorn/server.py", WATCH, NULL},
	{"receive", "uvicorn/lifespan/on.py", WATCH, NULL},
	{"run", "uvicorn/supervisors/multiprocess.py", WATCH, NULL},
	{"pong", "uvicorn/supervisors/multiprocess.py", WATCH, NULL},
	{"run", "hypercorn/run.py", WATCH, NULL},
	{"__call__", "asgiref/sync.py", SERVES, NULL},
	{"handler_thread", "waitress/task.py", POOL, NULL},
	{"poll", "waitress/wasyncore.py", PASSES, "poll network"},
	{"poll2", "waitress/wasyncore.py", PASSES, "poll network"},
	{"loop", "waitress/wasyncore.py", LOOP, NULL},
	{"select", "cheroot/connections.py", PASSES, NULL},
	{"_run", "cheroot/connections.py", POOL, NULL},
	/* Event loops and their threads. */
	{"run", "gevent/hub.py", LOOP, "poll network"},
	{"get", "gevent/_threading.py", PASSES, NULL},
	{"wait", "gevent/_threading.py", PASSES, "lock"},
	{"acquire_with_timeout", "gevent/_threading.py", PASSES, "lock"},
	{"run", "gevent/threadpool.py", POOL, NULL},
	{"wait", "eventlet/hubs/poll.py", PASSES, NULL},
	{"do_poll", "eventlet/hubs/poll.py", PASSES, "poll network"},
	{"do_poll", "eventlet/hubs/epolls.py", PASSES, "poll network"},
	{"run", "eventlet/hubs/hub.py", LOOP, NULL},
	{"get_events", "trio/_core/_io_epoll.py", PASSES, "poll network"},
	{"run", "trio/_core/_run.py", LOOP, NULL},
	{"_work", "trio/_core/_thread_cache.py", POOL, "lock"},
	{"doPoll", "twisted/internet/epollreactor.py", PASSES, "poll network"},
	{"mainLoop", "twisted/internet/base.py", LOOP, NULL},
	{"start", "tornado/ioloop.py", LOOP, "poll network"},
	/* Celery, its pool billiard and its transports. */
	{"_recv", "billiard/pool.py", PASSES, NULL},
	{"receive", "billiard/pool.py", PASSES, NULL},
	{"_poll_result", "billiard/pool.py", PASSES, NULL},
	{"_process_result", "billiard/pool.py", PASSES, NULL},
	{"get_payload", "billiard/queues.py", PASSES, NULL},
	{"__enter__", "billiard/synchronize.py", PASSES, "lock"},
	{"recv_bytes", "billiard/connection.py", PASSES, NULL},
	{"_recv_bytes", "billiard/connection.py", PASSES, NULL},
	{"_recv", "billiard/connection.py", PASSES, "pipe"},
	{"wait", "billiard/connection.py", PASSES, NULL},
	{"poll", "billiard/connection.py", PASSES, NULL},
	{"_poll", "billiard/connection.py", PASSES, "pipe poll"},
	{"workloop", "billiard/pool.py", POOL, NULL},
	{"body", "billiard/pool.py", POOL, "sleep"},
	{"run", "celery/utils/timer2.py", POOL, "sleep lock"},
	{"drain_events", "kombu/transport/virtual/base.py", PASSES, "sleep"},
	{"drain_events", "kombu/transport/pyamqp.py", PASSES, NULL},
	{"drain_events", "kombu/connection.py", PASSES, NULL},
	{"drain_events", "amqp/connection.py", PASSES, NULL},
	{"blocking_read", "amqp/connection.py", PASSES, NULL},
	{"read_frame", "amqp/transport.py", PASSES, NULL},
	{"_read", "amqp/transport.py", PASSES, "network"},
	{"get", "kombu/transport/redis.py", PASSES, NULL},
	{"poll", "kombu/utils/eventio.py", PASSES, "poll network"},
	{"_loop_cycle", "celery/worker/loops.py", POOL, NULL},
	{"create_loop", "kombu/asynchronous/hub.py", POOL, NULL},
	{"trace_task", "celery/app/trace.py", SERVES, NULL},
	{"_main_loop", "apscheduler/schedulers/blocking.py", POOL, NULL},
};

#define NR_PLACES (sizeof(places) / sizeof(*places))

/* The default for functions that are not in the table: a library's, or the program's. */
static const struct place no_place;

/* Most frames between the function that takes and the start of a library's thread that does nothing else. */
#define THREAD_FRAMES_MAX 2

struct idle {
	const struct profile *p;
	const struct place **of_frame;
	bool origins; /* it is known which functions are libraries' */
};

/* Returns whether the text ends with the part, and that begins the text or is behind the separator. */
static bool ends_with(const char *text, char separator, const char *part)
{
	size_t length = strlen(text), end = strlen(part);

	return length >= end && strcmp(text + length - end, part) == 0 &&
	       (length == end || text[length - end - 1] == separator);
}

static const struct place *find_place(const struct profile *p, const struct profile_frame *frame)
{
	const char *name = profile_string(p, frame->name), *file = profile_string(p, frame->file);

	for (size_t i = 0; i < NR_PLACES && frame->kind == PROFILE_PYTHON; i++) {
		if (ends_with(name, '.', places[i].name) && ends_with(file, '/', places[i].file))
			return &places[i];
	}
	return &no_place;
}

static bool is_library(const struct idle *idle, uint32_t stack)
{
	const struct profile_frame *frame;

	if (stack == PROFILE_ROOT)
		return false;
	frame = profile_frame_at(idle->p, profile_stack_at(idle->p, stack)->frame);
	return frame->kind == PROFILE_PYTHON && profile_origin_of(idle->p, frame->file) != PROFILE_OWN;
}

/* Returns the place of the stack's leaf, if that is a library's function as far as it is known. */
static const struct place *place_of(const struct idle *idle, uint32_t stack)
{
	if (stack == PROFILE_ROOT || (idle->origins && !is_library(idle, stack)))
		return &no_place;
	return idle->of_frame[profile_stack_at(idle->p, stack)->frame];
}

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words ? strstr(words, word) : NULL; at; at = strstr(at + 1, word)) {
		if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	}
	return false;
}

/* Returns whether the function on top of the stack waits itself, in the state that the wait has. */
static bool waits_itself(const struct idle *idle, const struct place *place, const struct profile_frame *wait)
{
	const char *state = profile_string(idle->p, wait->state), *name = profile_string(idle->p, wait->name);

	/* Other notes, such as "[asleep with the GIL: sleep]", hold up other threads. */
	return has_word(place->itself, state) && name[0] == '[' && strncmp(name + 1, state, strlen(state)) == 0;
}

/*
 * Returns whether what a loop waits for, or what ended its wait, is an answer: of a connection that the program made,
 * of a child. Work comes over connections that it accepts, and after a time. A named unix socket may be either.
 * Without a colon the wait does not say it, as with --wait-detail=none.
 */
static bool asks_for(const char *wait)
{
	static const char *const answers[] = {WAIT_TCP, WAIT_UDP, WAIT_UNIX, WAIT_PIPE, "read", WAIT_PROCESS, NULL};
	static const char *const work[] = {WAIT_TCP WAIT_ON, WAIT_TCP_CLIENTS, WAIT_UDP WAIT_ON, NULL};
	const char *until = strstr(wait, WAIT_UNTIL), *colon = strstr(wait, ": ");
	const char *what = until ? until + strlen(WAIT_UNTIL) : colon ? colon + strlen(": ") : NULL;

	if (!what)
		return true;
	for (int i = 0; work[i]; i++) {
		if (strncmp(what, work[i], strlen(work[i])) == 0)
			return false;
	}
	for (int i = 0; answers[i]; i++) {
		if (strncmp(what, answers[i], strlen(answers[i])) == 0)
			return true;
	}
	return false;
}

/* Returns whether a piece of work is done below, that of a pool or server. */
static bool is_within_work(const struct idle *idle, uint32_t stack)
{
	for (; stack != PROFILE_ROOT; stack = profile_stack_at(idle->p, stack)->parent) {
		enum role role = place_of(idle, stack)->role;

		if (role == SERVES || role == POOL)
			return true;
	}
	return false;
}

/* Returns whether a library's thread does nothing but take, with the function on top of the stack. */
static bool takes_only(const struct idle *idle, uint32_t stack)
{
	for (int i = 0; i < THREAD_FRAMES_MAX && is_library(idle, stack); i++) {
		stack = profile_stack_at(idle->p, stack)->parent;
		if (place_of(idle, stack)->role == BEGINS)
			return true;
	}
	return false;
}

/* Returns whether the stack, whose leaf is a wait, is idle. */
static bool is_idle(const struct idle *idle, uint32_t stack)
{
	const struct profile_frame *wait;
	uint32_t at = profile_waiter_of(idle->p, stack), above = stack;
	const struct place *place = place_of(idle, at);
	bool taken = false;

	/* The note of who ended it may be behind the wait's own. */
	while (profile_state_of(idle->p, profile_stack_at(idle->p, above)->parent))
		above = profile_stack_at(idle->p, above)->parent;
	wait = profile_frame_at(idle->p, profile_stack_at(idle->p, above)->frame);
	if (!waits_itself(idle, place, wait))
		return false;
	while (place->role == PASSES || place->role == TAKES) {
		taken |= place->role == TAKES;
		at = profile_stack_at(idle->p, at)->parent;
		place = place_of(idle, at);
	}
	if (place->role == POOL || place->role == WATCH)
		return true;
	if (place->role == LOOP)
		return !asks_for(profile_string(idle->p, wait->name)) && !is_within_work(idle, at);
	return taken && takes_only(idle, at);
}

/* Returns 0 or -1 without memory. */
static int find_places(struct idle *idle)
{
	const struct profile *p = idle->p;
	uint32_t frames = profile_frame_count(p);

	idle->of_frame = calloc((size_t)frames + 1, sizeof(const struct place *));
	for (uint32_t i = 0; idle->of_frame && i < frames; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);

		idle->of_frame[i] = find_place(p, frame);
		idle->origins |= profile_origin_of(p, frame->file) != PROFILE_OWN;
	}
	return idle->of_frame ? 0 : -1;
}

bool *profile_idle_stacks(const struct profile *p)
{
	struct idle idle = {.p = p};
	uint32_t count = profile_stack_count(p);
	bool *found = calloc(count, sizeof(*found));

	if (!found || find_places(&idle)) {
		free(found);
		return NULL;
	}
	for (uint32_t s = 1; s < count; s++)
		found[s] = profile_state_of(p, s) && is_idle(&idle, s);
	free(idle.of_frame);
	return found;
}

bool profile_is_folded_idle(const struct profile *p, uint32_t stack)
{
	const struct profile_stack *at = profile_stack_at(p, stack);

	return at->parent == PROFILE_ROOT && profile_state_of(p, stack) &&
	       strcmp(profile_string(p, profile_frame_at(p, at->frame)->name), PROFILE_IDLE_NAME) == 0;
}
