// SPDX-License-Identifier: Apache-2.0
/* The process that sends, when it receives bodies: it has no memory, no descriptor, or is killed. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "child/message.h"
#include "push/internal.h"

#define BYTES 1000

/* What the process receives, one after the other. */
struct received {
	int error;     /* negative errno; 0: a message */
	bool has_file; /* of the message; else its descriptor is missing */
	bool compress;
	bool is_end; /* of the messages */
};

static struct world {
	const struct received *next;
	double now;
	struct push_shared shared;
} * world; /* shared by the test and the process */

double clock_s(clockid_t clock)
{
	(void)clock;
	return world->now;
}

uint64_t clock_ns(clockid_t clock)
{
	(void)clock;
	return (uint64_t)(world->now * 1e9);
}

ssize_t child_receive(int socket, void *message, size_t size, int *fds, size_t count, int flags)
{
	const struct received *received = world->next++;
	static const char bytes[BYTES];

	(void)socket;
	(void)flags;
	assert_int_equal(size, sizeof(struct push_message));
	assert_int_equal(count, 1);
	*fds = -1;
	if (received->error)
		return received->error;
	*(struct push_message *)message = (struct push_message){
		.kind = received->is_end ? PUSH_END : PUSH_BODY,
		.compress = received->compress,
		.size = BYTES,
	};
	if (received->has_file) {
		*fds = memfd_create("body", MFD_CLOEXEC);
		assert_int_equal(write(*fds, bytes, sizeof(bytes)), sizeof(bytes));
	}
	return (ssize_t)size;
}

/* The process is killed while it compresses a body. */
FILE *gzip_open(FILE *out)
{
	(void)out;
	raise(SIGKILL);
	return NULL;
}

static CURLM *play_init(void)
{
	return world;
}

/* There is something to receive whenever that is asked for. */
static CURLMcode play_poll(CURLM *multi, struct curl_waitfd *fds, unsigned count, int ms, int *ready)
{
	(void)multi;
	(void)ready;
	if (count)
		fds[0].revents = CURL_WAIT_POLLIN;
	else
		world->now += ms / 1000.0;
	return CURLM_OK;
}

/* No attempt can be made. */
static CURL *play_no_memory(void)
{
	return NULL;
}

static void play_cleanup(CURL *easy)
{
	(void)easy;
}

static struct curl_slist *play_append(struct curl_slist *list, const char *line)
{
	(void)list;
	(void)line;
	return NULL;
}

static void play_free_all(struct curl_slist *list)
{
	(void)list;
}

/* Runs the process, which receives these. Returns how it ended, as waitpid(2) tells it. */
static int run(const struct received *received)
{
	static struct push_process process = {
		.socket = 0,
		.url = "http://receiver",
		.queue_max = 10 * BYTES,
		.retry_s = 300,
		.curl = {.multi_init = play_init,
			 .multi_poll = play_poll,
			 .easy_init = play_no_memory,
			 .easy_cleanup = play_cleanup,
			 .slist_append = play_append,
			 .slist_free_all = play_free_all},
	};
	struct error error;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		return status;
	}
	world->next = received;
	process.shared = &world->shared;
	if (push_spool_open(&process.spool, NULL, 0, &error))
		abort();
	push_work(&process);
}

static int make_world(void **unused)
{
	(void)unused;
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(world, MAP_FAILED);
	world->now = 1000;
	return 0;
}

static int unmake_world(void **unused)
{
	(void)unused;
	return munmap(world, sizeof(*world));
}

/* Its keeper counts what was in memory: the body, whose bytes do not narrow the window any more. */
static void test_killed_while_it_takes_a_body(void **unused)
{
	static const struct received received[] = {{.has_file = true, .compress = true}};
	int status;

	(void)unused;
	status = run(received);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(world->shared.taken_bytes, BYTES);
	assert_int_equal(world->shared.in_memory, 1);
}

/* It goes on after the kernel had no memory for a moment, and the body without a file is lost, and counted. */
static void test_what_passes_does_not_end_it(void **unused)
{
	static const struct received received[] = {
		{.error = -ENOMEM}, {.has_file = true}, {.error = -ENOBUFS}, {.has_file = false},
		{.error = -EAGAIN}, {.has_file = true}, {.error = -EAGAIN},  {.is_end = true},
	};
	int status;

	(void)unused;
	status = run(received);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(world->shared.taken_bytes, 3 * BYTES);
	assert_int_equal(world->shared.dropped[PUSH_QUEUE_FULL], 1);
	assert_int_equal(world->shared.dropped[PUSH_ENDED], 2);
	assert_int_equal(world->shared.in_memory, 0);
}

/* Without a message to end: the process that pushes has died. */
static void test_the_other_process_dies(void **unused)
{
	static const struct received received[] = {{.has_file = true}, {.error = -ECONNRESET}};
	int status;

	(void)unused;
	status = run(received);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(world->shared.dropped[PUSH_ENDED], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_while_it_takes_a_body, make_world, unmake_world),
		cmocka_unit_test_setup_teardown(test_what_passes_does_not_end_it, make_world, unmake_world),
		cmocka_unit_test_setup_teardown(test_the_other_process_dies, make_world, unmake_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
