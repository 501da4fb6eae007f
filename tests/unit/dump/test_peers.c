// SPDX-License-Identifier: Apache-2.0
/* What the kernel says of this process's own unix sockets. */
#include "dump/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

#define PATIENCE_NS 10000000000ull

static uint64_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static bool describe(const struct dump_peers *peers, uint64_t inode, struct pybpf_wait *out)
{
	/* What was there before does not stay. */
	memset(out, 'x', sizeof(*out));
	return dump_peers_describe(peers, inode, clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS, out);
}

static void assert_described(const struct dump_peers *peers, int fd, const char *name, size_t size, uint8_t flags)
{
	char text[PYBPF_WAIT_TEXT] = "";
	struct pybpf_wait wait;

	memcpy(text, name, size);
	assert_true(describe(peers, inode_of(fd), &wait));
	assert_int_equal(wait.file, PYBPF_FILE_UNIX);
	assert_int_equal(wait.flags, flags);
	assert_int_equal(wait.number, 0);
	assert_memory_equal(wait.text, text, sizeof(text));
}

static struct dump_peers *open_peers(void)
{
	const uint32_t own = (uint32_t)getpid();
	struct dump_peers *peers;

	assert_int_equal(dump_peers_open(&own, 1, &peers), 0);
	assert_non_null(peers);
	return peers;
}

static void test_pair(void **state)
{
	struct dump_peers *peers = open_peers();
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	assert_described(peers, ends[0], "", 0, PYBPF_WAIT_DATAGRAM);
	close(ends[0]);
	close(ends[1]);
	dump_peers_close(peers);
}

/* The longest name that there is, with every byte: of it as many are kept as there is room for. */
static void test_abstract(void **state)
{
	struct dump_peers *peers = open_peers();
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), accepted;
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	(void)state;
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "\n%d: 00000003 /run/other", getpid());
	assert_int_equal(bind(server, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&name, sizeof(name)), 0);
	accepted = accept(server, NULL, NULL);
	assert_described(peers, server, name.sun_path, PYBPF_WAIT_TEXT - 1, PYBPF_WAIT_LISTENING);
	assert_described(peers, client, name.sun_path, PYBPF_WAIT_TEXT - 1, 0);
	assert_described(peers, accepted, name.sun_path, PYBPF_WAIT_TEXT - 1, 0);
	close(server);
	close(client);
	close(accepted);
	dump_peers_close(peers);
}

static void test_what_is_none(void **state)
{
	struct dump_peers *peers = open_peers();
	int inet = socket(AF_INET, SOCK_DGRAM, 0), ends[2];
	struct pybpf_wait wait;
	uint64_t gone;

	(void)state;
	assert_false(describe(peers, inode_of(inet), &wait));
	assert_false(describe(peers, 0, &wait));
	assert_false(describe(peers, UINT64_MAX, &wait));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	gone = inode_of(ends[0]);
	/* The time is over. */
	assert_false(dump_peers_describe(peers, gone, clock_ns(CLOCK_MONOTONIC), &wait));
	close(ends[0]);
	close(ends[1]);
	assert_false(describe(peers, gone, &wait));
	close(inet);
	dump_peers_close(peers);
	dump_peers_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_abstract),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
