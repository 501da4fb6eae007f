// SPDX-License-Identifier: Apache-2.0
/* Processes with one job: how they begin, crash and end, and the descriptors of their messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child/child.h"
#include "child/message.h"

/* Answers each byte with itself, until the socket is closed. */
static void echo(int socket, void *state)
{
	struct error error = {.code = 0};
	char byte;

	(void)state;
	child_block_signals();
	if (!child_say_begun(socket, &error))
		return;
	while (recv(socket, &byte, 1, 0) == 1)
		send(socket, &byte, 1, MSG_NOSIGNAL);
}

static void test_signals_do_not_end_it(void **unused)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGALRM};
	struct child child;
	struct error error;
	char byte = 'x';
	pid_t pid;

	(void)unused;
	assert_int_equal(child_start(&child, "echoes", echo, NULL, &error), 0);
	pid = child.pid;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		assert_int_equal(kill(pid, signals[i]), 0);
	assert_int_equal(send(child.socket, &byte, 1, 0), 1);
	byte = 0;
	assert_int_equal(recv(child.socket, &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	child_end(&child, INFINITY);
	assert_int_equal(child.pid, 0);
	/* It has ended, and was waited for. */
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	child_end(&child, INFINITY);
}

static void refuse(int socket, void *state)
{
	struct error error;

	error_set(&error, -EMFILE, "cannot %s", (const char *)state);
	child_say_begun(socket, &error);
}

static void end_at_once(int socket, void *state)
{
	(void)socket;
	(void)state;
}

static void test_failed_begins(void **unused)
{
	struct child child;
	struct error error;

	(void)unused;
	assert_int_equal(child_start(&child, "fails", refuse, "open it", &error), -EMFILE);
	assert_string_equal(error.text, "cannot open it");
	assert_int_equal(child.pid, 0);
	assert_int_equal(child_start(&child, "fails", end_at_once, NULL, &error), -ECHILD);
	assert_string_equal(error.text, "the process that fails ended before it began");
	assert_int_equal(child.pid, 0);
}

/* The descriptors that a process has after it let go of all but one. */
static void list(int socket, void *state)
{
	int kept[] = {socket, *(int *)state, -1};
	struct error error = {.code = child_let_go(STDERR_FILENO, kept, 3)};
	uint64_t open_ones = 0;
	char folder[8] = "";

	if (!child_say_begun(socket, &error))
		return;
	for (int fd = 0; fd < 64; fd++)
		open_ones |= (uint64_t)(fcntl(fd, F_GETFD) >= 0) << fd;
	if (!getcwd(folder, sizeof(folder)) || strcmp(folder, "/") != 0 || write(STDOUT_FILENO, "lost", 4) != 4)
		open_ones = 0;
	send(socket, &open_ones, sizeof(open_ones), MSG_NOSIGNAL);
}

static void test_lets_go(void **unused)
{
	int kept = open("/", O_PATH | O_CLOEXEC), other = open("/", O_PATH | O_CLOEXEC);
	uint64_t open_ones = 0;
	struct child child;
	struct error error;

	(void)unused;
	assert_true(kept > STDERR_FILENO && other > STDERR_FILENO && other < 60);
	assert_int_equal(child_start(&child, "lists", list, &kept, &error), 0);
	assert_int_equal(recv(child.socket, &open_ones, sizeof(open_ones), 0), sizeof(open_ones));
	child_end(&child, INFINITY);
	/* The streams, the kept one and the socket. */
	assert_int_equal(open_ones & 7, 7);
	assert_true(open_ones & UINT64_C(1) << kept);
	assert_false(open_ones & UINT64_C(1) << other);
	assert_int_equal(__builtin_popcountll(open_ones), 5);
	close(kept);
	close(other);
}

/* Crashes twice, and ends then. */
static void __attribute__((noreturn)) crash_twice(void *state)
{
	const unsigned *crashes = state;

	if (*crashes < 2)
		raise(SIGKILL);
	_exit(0);
}

static bool count_crash(void *state)
{
	unsigned *crashes = state;

	++*crashes;
	return true;
}

static void keep(int socket, void *state)
{
	static const struct child_worker worker = {"crasher", crash_twice, count_crash};
	struct error error = {.code = 0};

	if (child_say_begun(socket, &error))
		child_keep(&worker, state);
}

static void test_restarts(void **unused)
{
	void *shared;
	struct child child;
	struct error error;
	char byte;

	(void)unused;
	assert_int_equal(child_share_memory(&shared, sizeof(unsigned), "crashes", &error), 0);
	assert_int_equal(child_start(&child, "crashes", keep, shared, &error), 0);
	/* The end of both processes. */
	assert_int_equal(recv(child.socket, &byte, 1, 0), 0);
	child_end(&child, INFINITY);
	assert_int_equal(*(unsigned *)shared, 2);
	munmap(shared, sizeof(unsigned));
}

static int count_open(void)
{
	int count = 0;

	for (int fd = 0; fd < 64; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void test_descriptors_of_messages(void **unused)
{
	int ends[2], sent[2], got[2], before;
	char bytes[4];

	(void)unused;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	sent[0] = child_write_memory_file("test", "one", 3);
	sent[1] = child_write_memory_file("test", "two", 3);
	assert_true(sent[0] >= 0 && sent[1] >= 0);
	before = count_open();
	assert_int_equal(child_send(ends[0], "ab", 2, sent, 2, 0), 0);
	assert_int_equal(child_receive(ends[1], bytes, sizeof(bytes), got, 2, 0), 2);
	assert_int_equal(pread(got[1], bytes, sizeof(bytes), 0), 3);
	assert_memory_equal(bytes, "two", 3);
	assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	close(got[0]);
	close(got[1]);
	assert_int_equal(child_send(ends[0], "c", 1, NULL, 0, 0), 0);
	assert_int_equal(child_receive(ends[1], bytes, sizeof(bytes), got, 2, 0), 1);
	assert_int_equal(got[0], -1);
	assert_int_equal(got[1], -1);
	/* More than the receiver asks for are not left open. */
	assert_int_equal(child_send(ends[0], "d", 1, sent, 2, 0), 0);
	assert_int_equal(child_receive(ends[1], bytes, sizeof(bytes), got, 1, 0), 1);
	close(got[0]);
	assert_int_equal(count_open(), before);
	assert_int_equal(child_receive(ends[1], bytes, sizeof(bytes), got, 1, MSG_DONTWAIT), -EAGAIN);
	close(ends[0]);
	assert_int_equal(child_receive(ends[1], bytes, sizeof(bytes), got, 1, 0), 0);
	close(ends[1]);
	close(sent[0]);
	close(sent[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals_do_not_end_it),
		cmocka_unit_test(test_failed_begins),
		cmocka_unit_test(test_lets_go),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_descriptors_of_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
