// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/procfs.h"

static int parse(const char *text, struct procfs_map *map)
{
	static char line[8192];

	assert_true(strlen(text) < sizeof(line));
	strcpy(line, text);
	return procfs_parse_map(line, map);
}

static void parses_map_lines(void **state)
{
	struct procfs_map map;

	(void)state;
	assert_int_equal(parse("55d0c0a00000-55d0c0a02000 r-xp 00001000 fd:0a 1835103                    "
			       "/usr/bin/python3.11",
			       &map),
			 0);
	assert_true(map.start == 0x55d0c0a00000 && map.end == 0x55d0c0a02000 && map.offset == 0x1000);
	assert_true(map.dev_major == 0xfd && map.dev_minor == 0x0a && map.inode == 1835103);
	assert_true(map.readable && !map.writable && map.executable && !map.deleted);
	assert_string_equal(map.path, "/usr/bin/python3.11");

	assert_int_equal(parse("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ", &map), 0);
	assert_true(map.inode == 0 && map.writable && !map.executable);
	assert_string_equal(map.path, "");
	assert_int_equal(parse("7f0000000000-7f0000001000 rw-s 00000000 00:00 0", &map), 0);
	assert_string_equal(map.path, "");
	assert_int_equal(
		parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]", &map), 0);
	assert_true(map.start == 0xffffffffff600000);
	assert_string_equal(map.path, "[vsyscall]");
}

static void parses_odd_paths(void **state)
{
	static const char prefix[] = "1000-2000 r--p 00000000 08:01 42 ";
	static const struct {
		const char *raw, *path;
		bool deleted;
	} cases[] = {
		{"/opt/my app/lib python.so", "/opt/my app/lib python.so", false},
		{"/usr/lib/libpython3.8.so.1.0 (deleted)", "/usr/lib/libpython3.8.so.1.0", true},
		{"/tmp/x (deleted) (deleted)", "/tmp/x (deleted)", true},
		{"/tmp/x (deleted) y", "/tmp/x (deleted) y", false},
		{"/tmp/a\\012b", "/tmp/a\nb", false},
		{"/tmp/a\\012b\\012", "/tmp/a\nb\n", false},
		{"/tmp/a\\01", "/tmp/a\\01", false},
		{"/tmp/back\\slash", "/tmp/back\\slash", false},
		{"/memfd:jit (deleted)", "/memfd:jit", true},
		{"/tmp/\xc3\xa9\xff", "/tmp/\xc3\xa9\xff", false},
		{"/tmp/tail ", "/tmp/tail ", false},
		{"(deleted)", "(deleted)", false},
	};
	struct procfs_map map;
	char line[8192], path[8000];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(line, sizeof(line), "%s%s", prefix, cases[i].raw);
		assert_int_equal(parse(line, &map), 0);
		assert_string_equal(map.path, cases[i].path);
		assert_int_equal(map.deleted, cases[i].deleted);
	}
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	snprintf(line, sizeof(line), "%s%s", prefix, path);
	assert_int_equal(parse(line, &map), 0);
	assert_string_equal(map.path, path);
}

static void refuses_malformed_map_lines(void **state)
{
	static const char good[] = "55d0c0a00000-55d0c0a02000 r-xp 00001000 fd:0a 1835103";
	static const char *const bad[] = {
		"",
		" ",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r",
		"1000-2000 r-xp",
		"2000-1000 r-xp 0 0:0 0",
		"1000-2000 rwxz 0 0:0 0",
		"1000-2000 ????  0 0:0 0",
		"1000-2000 r-xp 0 00 0",
		"1000-2000 r-xp 0 0:0",
		"1000-2000 r-xp 0 0:0 ",
		"1000-2000 r-xp 0 0:0 x",
		"0x1000-2000 r-xp 0 0:0 0",
		"-1000-2000 r-xp 0 0:0 0",
		" 1000-2000 r-xp 0 0:0 0",
		"1000-2000  r-xp 0 0:0 0",
		"1000-2000 r-xp 0 100000000:0 0",
		"1000-2000 r-xp 0 0:0 0/path",
		"11111111111111111-22222222222222222 r-xp 0 0:0 0",
		"1000-2000 r-xp 0 0:0 99999999999999999999999",
	};
	struct procfs_map map;
	char line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &map), -EBADMSG);
	assert_int_equal(parse(good, &map), 0);
	for (size_t len = 0; len < sizeof(good) - 7; len++) {
		snprintf(line, sizeof(line), "%.*s", (int)len, good);
		assert_int_equal(parse(line, &map), -EBADMSG);
	}
	/* Any byte anywhere: an answer, within the line. */
	for (size_t at = 0; at < sizeof(good) - 1; at++) {
		for (int byte = 1; byte < 256; byte++) {
			strcpy(line, good);
			line[at] = byte;
			if (!parse(line, &map))
				assert_true(map.end >= map.start);
		}
	}
}

static void parses_stat(void **state)
{
	static const char rest[] = " S 7 1 1 0 -1 4194560 1 2 3 4 55 66 5 6 20 -5 1 0 987654321 170 12 184";
	static const char *const comms[] = {
		"python3", "tmux: server", "a) R 1 (b", "((", "))", ")", "", "x\ny", "a comm (sd-pam) R 99 1 1",
	};
	struct procfs_stat stat;
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
		snprintf(text, sizeof(text), "123 (%s)%s\n", comms[i], rest);
		assert_int_equal(procfs_parse_stat(text, &stat), 0);
		assert_string_equal(stat.comm, comms[i]);
		assert_int_equal(stat.threads, 1);
		assert_false(stat.kernel_thread);
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.ppid, 7);
		assert_true(stat.start_time == 987654321);
	}
	snprintf(text, sizeof(text), "1 (%0100d)%s", 0, rest);
	assert_int_equal(procfs_parse_stat(text, &stat), 0);
	assert_int_equal(strlen(stat.comm), sizeof(stat.comm) - 1);
	/* A line that ends before field 22 is no stat; one that is cut within it cannot be told from a short
	 * one. */
	snprintf(text, sizeof(text), "1 (x)%s", rest);
	for (char *end = strstr(text, "987654321"); end >= text; end--) {
		*end = '\0';
		assert_int_equal(procfs_parse_stat(text, &stat), -EBADMSG);
	}
	assert_int_equal(procfs_parse_stat("1 )x( S 1", &stat), -EBADMSG);
	assert_int_equal(procfs_parse_stat("1 (x) S -7 1 1 0 -1 1 1 2 3 4 5 6 5 6 20 0 1 0 9 1", &stat), -EBADMSG);
}

static void reads_its_own_stat(void **state)
{
	struct procfs_stat stat, again;
	pid_t child, process;
	int status;

	(void)state;
	assert_int_equal(procfs_read_stat(getpid(), &stat), 0);
	assert_int_equal(stat.ppid, getppid());
	assert_true(stat.start_time > 0);
	assert_int_equal(procfs_thread_group(getpid(), &process), 0);
	assert_int_equal(process, getpid());
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(procfs_read_stat(child, &again), -ESRCH);
	assert_int_equal(procfs_thread_group(child, &process), -ESRCH);
}

struct wanted {
	uintptr_t addr;
	pid_t pid;
	int fd;
	int count;
};

static int open_at(const struct procfs_map *map, void *arg)
{
	struct wanted *wanted = arg;

	wanted->count++;
	if (wanted->addr < map->start || wanted->addr >= map->end)
		return 0;
	wanted->fd = procfs_open_map(wanted->pid, map);
	return 5;
}

static void opens_what_is_mapped(void **state)
{
	char path[] = "/tmp/pybpf-map-XXXXXX";
	struct wanted wanted = {.pid = getpid(), .fd = -1};
	int fd = mkstemp(path);
	struct stat a, b;
	void *page;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	wanted.addr = (uintptr_t)page;
	assert_int_equal(procfs_each_map(getpid(), open_at, &wanted), 5);
	assert_true(wanted.fd >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(wanted.fd, &b), 0);
	assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	close(wanted.fd);

	/* Deleted, and its name taken by a FIFO: the mapping's own file or an error, never the other, never a
	 * wait. */
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	wanted.fd = -1;
	assert_int_equal(procfs_each_map(getpid(), open_at, &wanted), 5);
	if (wanted.fd >= 0) {
		assert_int_equal(fstat(wanted.fd, &b), 0);
		assert_true(S_ISREG(b.st_mode) && a.st_ino == b.st_ino);
		close(wanted.fd);
	}
	unlink(path);
	munmap(page, 4096);
	close(fd);
}

/* Without map_files, by path: a map line that no mapping stands behind sends it there. */
static void opens_by_path_only_the_same_file(void **state)
{
	char path[] = "/tmp/pybpf-map-XXXXXX", other[64];
	struct procfs_map map = {.start = 0x1000, .end = 0x2000, .path = path};
	int fd = mkstemp(path), found;
	struct stat st;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	map.inode = st.st_ino;
	map.dev_major = major(st.st_dev);
	map.dev_minor = minor(st.st_dev);
	found = procfs_open_map(getpid(), &map);
	assert_true(found >= 0);
	close(found);
	map.inode++;
	assert_int_equal(procfs_open_map(getpid(), &map), -ESTALE);
	map.inode--;
	/* Another file system has a file of that inode. */
	map.dev_minor++;
	assert_int_equal(procfs_open_map(getpid(), &map), -ESTALE);
	map.dev_minor--;
	/* A relative climb ends at the root, as it does for the process. */
	snprintf(other, sizeof(other), "/../../../..%s", path);
	map.path = other;
	found = procfs_open_map(getpid(), &map);
	assert_true(found >= 0);
	close(found);
	unlink(path);
	assert_true(procfs_open_map(getpid(), &map) < 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(procfs_open_map(getpid(), &map), -ENOEXEC);
	unlink(path);
	map.path = "/dev/zero";
	assert_int_equal(procfs_open_map(getpid(), &map), -ENOEXEC);
	map.path = "[heap]";
	assert_true(procfs_open_map(getpid(), &map) < 0);
	close(fd);
}

static void says_when_there_is_no_process(void **state)
{
	struct wanted wanted = {.pid = 0, .fd = -1};
	pid_t child = fork();
	siginfo_t info;

	(void)state;
	if (!child)
		_exit(0);
	/* A zombie has no mappings; then the process is gone. */
	assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(procfs_each_map(child, open_at, &wanted), 0);
	assert_int_equal(wanted.count, 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(procfs_each_map(child, open_at, &wanted), -ESRCH);
}

static void parses_status(void **state)
{
	static const char *const bad[] = {
		"",
		"Name:\tx\n",
		"Uid:\t1\t2\t3\t4\n",
		"NSpid:\t7\n",
		"Uid:\t1\nNSpid:\t7\n",
		"Uid:\tx\t2\nNSpid:\t7\n",
		"Uid:\t1\t2\t3\t4\nNSpid:\t\n",
		"Uid:\t1\t99999999999\t3\t4\nNSpid:\t7\n",
		"XUid:\t1\t2\t3\t4\nNSpid:\t7\n",
	};
	struct procfs_status status;

	(void)state;
	/* A comm of "a\nUid:" is escaped by the kernel. */
	assert_int_equal(procfs_parse_status("Name:\ta\\nUid:\nUmask:\t0022\nPid:\t4711\nUid:\t0\t33\t33\t33\n"
					     "NStgid:\t4711\t12\t1\nNSpid:\t4711\t12\t1\n",
					     &status),
			 0);
	assert_int_equal(status.uid, 33);
	assert_int_equal(status.inside, 1);
	assert_int_equal(procfs_parse_status("Uid:\t0\t4294967295\t0\t0\nNSpid:\t42", &status), 0);
	assert_true(status.uid == 4294967295);
	assert_int_equal(status.inside, 42);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (procfs_parse_status(bad[i], &status) != -EBADMSG)
			fail_msg("accepted %s", bad[i]);
	assert_int_equal(procfs_read_status(getpid(), &status), 0);
	assert_int_equal(status.uid, geteuid());
}

static void reads_whole_files(void **state)
{
	char *text, few[5];
	size_t len;

	(void)state;
	assert_int_equal(procfs_read(getpid(), "comm", 4096, &text, &len), 0);
	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "test_procfs"));
	free(text);
	assert_int_equal(procfs_read(getpid(), "comm", len, &text, NULL), 0);
	free(text);
	assert_int_equal(procfs_read(getpid(), "comm", len - 1, &text, NULL), -EFBIG);
	/* It takes more than one page. */
	assert_int_equal(procfs_read(getpid(), "smaps", 64 << 20, &text, &len), 0);
	assert_true(len > 8192 && len == strlen(text));
	free(text);
	assert_int_equal(procfs_read(getpid(), "no-such-file", 4096, &text, NULL), -ESRCH);
	assert_int_equal(procfs_read_some(getpid(), "comm", few, sizeof(few)), 4);
	assert_string_equal(few, "test");
}

/* A child that sleeps, is stopped, and spins: each state, and no CPU time but that of the last. */
static void tells_what_a_process_does(void **state)
{
	const struct timespec pause_time = {.tv_nsec = 10000000};
	uint64_t before = 0, after = 1;
	pid_t child = fork();
	char now = 0;

	(void)state;
	if (!child) {
		for (;;)
			pause();
	}
	for (int i = 0; i < 1000 && (now != 'S' || before != after); i++) {
		before = after;
		nanosleep(&pause_time, NULL);
		assert_int_equal(procfs_cpu_ns(child, &after), 0);
		assert_int_equal(procfs_read_state(child, &now), 0);
	}
	assert_int_equal(now, 'S');
	assert_int_equal(procfs_cpu_ns(child, &before), 0);
	assert_int_equal(before, after);
	assert_true(before > 0);
	kill(child, SIGSTOP);
	for (int i = 0; i < 1000 && now != 'T'; i++) {
		nanosleep(&pause_time, NULL);
		assert_int_equal(procfs_read_state(child, &now), 0);
	}
	assert_int_equal(now, 'T');
	/* To stop, it ran. */
	assert_int_equal(procfs_cpu_ns(child, &after), 0);
	assert_true(after > before);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(procfs_read_state(child, &now), -ESRCH);
	assert_int_not_equal(procfs_cpu_ns(child, &after), 0);
}

static void *spin(void *unused)
{
	for (volatile uint64_t n = 0;; n++)
		;
	return unused;
}

/* The first thread sleeps, and the second one runs. */
static void tells_the_state_of_the_busiest_thread(void **state)
{
	const struct timespec pause_time = {.tv_nsec = 10000000};
	struct procfs_stat leader = {.state = 0};
	pid_t child = fork();
	pthread_t thread;
	char now = 0;

	(void)state;
	if (!child) {
		if (pthread_create(&thread, NULL, spin, NULL))
			_exit(1);
		for (;;)
			pause();
	}
	for (int i = 0; i < 1000 && (now != 'R' || leader.state != 'S'); i++) {
		nanosleep(&pause_time, NULL);
		assert_int_equal(procfs_read_stat(child, &leader), 0);
		assert_int_equal(procfs_read_state(child, &now), 0);
	}
	assert_int_equal(leader.state, 'S');
	assert_int_equal(now, 'R');
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_map_lines),
		cmocka_unit_test(parses_odd_paths),
		cmocka_unit_test(refuses_malformed_map_lines),
		cmocka_unit_test(parses_stat),
		cmocka_unit_test(reads_its_own_stat),
		cmocka_unit_test(opens_what_is_mapped),
		cmocka_unit_test(opens_by_path_only_the_same_file),
		cmocka_unit_test(says_when_there_is_no_process),
		cmocka_unit_test(parses_status),
		cmocka_unit_test(reads_whole_files),
		cmocka_unit_test(tells_what_a_process_does),
		cmocka_unit_test(tells_the_state_of_the_busiest_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
