// SPDX-License-Identifier: Apache-2.0
/* What a thread waits for, in words. */
#include "session/waits/wait_name.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

static void assert_name(struct pybpf_wait wait, const char *wanted)
{
	char name[SESSION_WAIT_NAME];

	session_name_wait(&wait, name, sizeof(name));
	assert_string_equal(name, wanted);
}

static struct pybpf_wait on_socket(const char *address, uint32_t port, unsigned flags)
{
	struct pybpf_wait wait = {
		.state = PYBPF_STATE_NETWORK, .call = PYBPF_CALL_RECEIVE, .number = port, .flags = (uint8_t)flags};

	wait.file = strchr(address, ':') ? PYBPF_FILE_INET6 : PYBPF_FILE_INET;
	assert_int_equal(inet_pton(wait.file == PYBPF_FILE_INET6 ? AF_INET6 : AF_INET, address, wait.address), 1);
	return wait;
}

static struct pybpf_wait on_file(unsigned state, unsigned call, unsigned file, const char *text)
{
	struct pybpf_wait wait = {.state = (uint8_t)state, .call = (uint8_t)call, .file = (uint8_t)file};

	memcpy(wait.text, text, strlen(text));
	return wait;
}

static void test_states_alone(void **state)
{
	(void)state;
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_QUEUED}, "[waiting for a CPU]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_GIL, .call = PYBPF_CALL_FUTEX}, "[GIL]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_LOCK, .call = PYBPF_CALL_FUTEX}, "[lock]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_SLEEP, .call = PYBPF_CALL_SELECT}, "[sleep]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_STOPPED}, "[stopped]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_OTHER, .call = PYBPF_CALL_OTHER, .number = SYS_close},
		    "[other: close]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_DISK, .call = PYBPF_CALL_OTHER, .number = SYS_msync},
		    "[disk: msync]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_OTHER, .call = PYBPF_CALL_OTHER, .number = 9999},
		    "[other]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_OTHER, .call = PYBPF_CALL_OTHER, .number = UINT32_MAX},
		    "[other]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_THROTTLED}, "[throttled]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_THROTTLED, .number = 1000}, "[throttled: quota of 1 CPU]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_THROTTLED, .number = 250},
		    "[throttled: quota of 0.25 CPUs]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_OTHER, .call = PYBPF_CALL_SIGNAL}, "[other: signal]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_DISK, .call = PYBPF_CALL_FAULT}, "[disk: page fault]");
	assert_string_equal(session_state_name(PYBPF_NR_STATES), "");
}

static void test_sockets(void **state)
{
	(void)state;
	assert_name(on_socket("10.0.0.5", 5432, 0), "[network: tcp 10.0.0.5:5432]");
	assert_name(on_socket("0.0.0.0", 80, PYBPF_WAIT_LISTENING), "[network: tcp on 0.0.0.0:80]");
	assert_name(on_socket("9.9.9.9", 53, PYBPF_WAIT_DATAGRAM), "[network: udp 9.9.9.9:53]");
	assert_name(on_socket("0.0.0.0", 53, PYBPF_WAIT_DATAGRAM | PYBPF_WAIT_LISTENING),
		    "[network: udp on 0.0.0.0:53]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_NETWORK,
					.file = PYBPF_FILE_INET,
					.flags = PYBPF_WAIT_ACCEPTED,
					.number = 8000},
		    "[network: tcp clients of :8000]");
	assert_name(on_socket("2001:db8::7", 443, 0), "[network: tcp [2001:db8::7]:443]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_NETWORK, .file = PYBPF_FILE_SOCKET, .number = 16},
		    "[network: netlink]");
	assert_name((struct pybpf_wait){.state = PYBPF_STATE_NETWORK, .file = PYBPF_FILE_SOCKET, .number = 40},
		    "[network: socket of family 40]");
}

static void test_unix_sockets(void **state)
{
	struct pybpf_wait abstract = on_file(PYBPF_STATE_NETWORK, PYBPF_CALL_RECEIVE, PYBPF_FILE_UNIX, "");
	struct pybpf_wait long_name = abstract;

	(void)state;
	assert_name(abstract, "[network: unix]");
	memcpy(abstract.text + 1, "bus", 3);
	assert_name(abstract, "[network: unix @bus]");
	assert_name(on_file(PYBPF_STATE_NETWORK, PYBPF_CALL_RECEIVE, PYBPF_FILE_UNIX, "/run/x.sock"),
		    "[network: unix /run/x.sock]");
	session_set_wait_text(&long_name, "/run/of-47-bytes/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 47);
	assert_name(long_name, "[network: unix /run/of-47-bytes/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]");
}

static void test_names_that_are_cut(void **state)
{
	static const char path[] = "/run/postgresql/a-cluster-with-a-long-name/socket.d/.s.PGSQL.5432";
	struct pybpf_wait one = on_file(PYBPF_STATE_NETWORK, PYBPF_CALL_RECEIVE, PYBPF_FILE_UNIX, ""), other = one;
	char abstract[108] = "";

	(void)state;
	session_set_wait_text(&one, path, strlen(path));
	assert_name(one, "[network: unix /run/postgresql/a-cl...name/socket.d/.s.PGSQL.5432]");
	assert_int_equal(one.number, strlen(path));
	memset(abstract + 1, 'b', sizeof(abstract) - 1);
	session_set_wait_text(&other, abstract, sizeof(abstract));
	assert_name(other, "[network: unix @bbbbbbbbbbbbbbbbbbb...bbbbbbbbbbbbbbbbbbbbbbbbbbb]");
	memset(abstract + 60, 0, sizeof(abstract) - 60);
	other = on_file(PYBPF_STATE_NETWORK, PYBPF_CALL_RECEIVE, PYBPF_FILE_UNIX, "");
	session_set_wait_text(&other, abstract, sizeof(abstract));
	assert_name(other, "[network: unix @bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb...]");
	memset(abstract + 4, 0, sizeof(abstract) - 4);
	other = on_file(PYBPF_STATE_NETWORK, PYBPF_CALL_RECEIVE, PYBPF_FILE_UNIX, "");
	session_set_wait_text(&other, abstract, sizeof(abstract));
	assert_name(other, "[network: unix @bbb]");
}

static void test_files(void **state)
{
	(void)state;
	assert_name(on_file(PYBPF_STATE_DISK, PYBPF_CALL_READ, PYBPF_FILE_REGULAR, "app.db"), "[disk: read app.db]");
	assert_name(on_file(PYBPF_STATE_LOCK, PYBPF_CALL_LOCK, PYBPF_FILE_REGULAR, "app.lock"),
		    "[lock: file app.lock]");
	assert_name(on_file(PYBPF_STATE_PIPE, PYBPF_CALL_READ, PYBPF_FILE_DEVICE, "tty1"), "[pipe: read tty1]");
	assert_name(on_file(PYBPF_STATE_PIPE, PYBPF_CALL_READ, PYBPF_FILE_DEVICE, "0"), "[pipe: read pts/0]");
	assert_name(on_file(PYBPF_STATE_PIPE, PYBPF_CALL_WRITE, PYBPF_FILE_PIPE, ""), "[pipe: write]");
	assert_name(on_file(PYBPF_STATE_OTHER, PYBPF_CALL_READ, PYBPF_FILE_ANONYMOUS, "[eventfd]"),
		    "[other: read [eventfd]]");
}

static void test_processes(void **state)
{
	struct pybpf_wait wait = on_file(PYBPF_STATE_CHILD, PYBPF_CALL_POLL, PYBPF_FILE_PROCESS, "");

	(void)state;
	assert_name(wait, "[child]");
	wait.number = 4711;
	assert_name(wait, "[child: 4711]");
	wait.state = PYBPF_STATE_OTHER;
	assert_name(wait, "[other: process 4711]");
	wait.number = 0;
	assert_name(wait, "[other: a process]");
}

static void test_descriptors_and_children(void **state)
{
	struct pybpf_wait poll = {.state = PYBPF_STATE_POLL, .call = PYBPF_CALL_POLL, .number = 3};
	struct pybpf_wait child = {.state = PYBPF_STATE_CHILD, .call = PYBPF_CALL_CHILD, .number = 4711};
	struct pybpf_wait ready = {.state = PYBPF_STATE_POLL, .call = PYBPF_CALL_EPOLL, .file = PYBPF_FILE_PIPE};

	(void)state;
	assert_name(poll, "[poll: 3 descriptors]");
	poll.number = 1;
	assert_name(poll, "[poll: 1 descriptor]");
	poll.call = PYBPF_CALL_EPOLL;
	assert_name(poll, "[poll: epoll]");
	assert_name(ready, "[poll: epoll until a pipe]");
	ready.file = PYBPF_FILE_ANONYMOUS;
	strcpy(ready.text, "[eventfd]");
	assert_name(ready, "[poll: epoll until [eventfd]]");
	ready.file = PYBPF_FILE_INET;
	ready.flags = PYBPF_WAIT_ACCEPTED;
	ready.number = 8000;
	assert_name(ready, "[poll: epoll until tcp clients of :8000]");
	poll.call = PYBPF_CALL_SELECT;
	assert_name(poll, "[poll: select]");
	assert_name(child, "[child: 4711]");
	child.number = 0;
	assert_name(child, "[child]");
}

static void test_bytes_that_make_no_sense(void **state)
{
	struct pybpf_wait wait;
	char name[SESSION_WAIT_NAME];

	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		memset(&wait, (int)byte, sizeof(wait));
		session_name_wait(&wait, name, sizeof(name));
		assert_int_equal(name[0], '[');
		assert_int_equal(name[strlen(name) - 1], ']');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_alone),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_unix_sockets),
		cmocka_unit_test(test_names_that_are_cut),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_descriptors_and_children),
		cmocka_unit_test(test_bytes_that_make_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
