// SPDX-License-Identifier: Apache-2.0
/* What a process that gave up its rights can still do, tried out in a child for each level. Needs no root. */
#include "rights/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define X32 0x40000000

struct attempt {
	const char *name;
	long call, arguments[5];
	int error; /* what it fails with */
};

static union bpf_attr no_attr;
static struct perf_event_attr no_event;
static struct open_how read_how;
static char *const no_words[] = {NULL};
static char page[4096] __attribute__((aligned(4096)));

/* Whatever the level: what takes over a machine, or another process. */
static const struct attempt refused[] = {
	{"execve", SYS_execve, {(long)"/bin/true", (long)no_words, (long)no_words}, EPERM},
	{"execveat", SYS_execveat, {AT_FDCWD, (long)"/bin/true", (long)no_words, (long)no_words}, EPERM},
	{"ptrace", SYS_ptrace, {PTRACE_TRACEME}, EPERM},
	{"process_vm_writev", SYS_process_vm_writev, {1}, EPERM},
	{"pidfd_getfd", SYS_pidfd_getfd, {-1}, EPERM},
	{"kill", SYS_kill, {1, 0}, EPERM},
	{"tgkill", SYS_tgkill, {1, 1, 0}, EPERM},
	{"mount", SYS_mount, {(long)"none", (long)"/proc", (long)"tmpfs"}, EPERM},
	{"move_mount", SYS_move_mount, {-1}, EPERM},
	{"umount2", SYS_umount2, {(long)"/nowhere"}, EPERM},
	{"pivot_root", SYS_pivot_root, {(long)"/nowhere", (long)"/nowhere"}, EPERM},
	{"chroot", SYS_chroot, {(long)"/"}, EPERM},
	{"unshare", SYS_unshare, {0}, EPERM},
	{"setns", SYS_setns, {-1}, EPERM},
	{"init_module", SYS_init_module, {0}, EPERM},
	{"finit_module", SYS_finit_module, {-1}, EPERM},
	{"delete_module", SYS_delete_module, {(long)"none"}, EPERM},
	{"kexec_load", SYS_kexec_load, {0}, EPERM},
	{"bpf, program", SYS_bpf, {BPF_PROG_LOAD, (long)&no_attr, sizeof(no_attr)}, EPERM},
	{"bpf, map", SYS_bpf, {BPF_MAP_CREATE, (long)&no_attr, sizeof(no_attr)}, EPERM},
	{"bpf, others' maps", SYS_bpf, {BPF_MAP_GET_FD_BY_ID, (long)&no_attr, sizeof(no_attr)}, EPERM},
	{"perf_event_open", SYS_perf_event_open, {(long)&no_event, 0, -1, -1}, EPERM},
	{"io_uring_setup", SYS_io_uring_setup, {0}, EPERM},
	{"userfaultfd", SYS_userfaultfd, {0}, EPERM},
	{"keyctl", SYS_keyctl, {0}, EPERM},
	{"setuid", SYS_setuid, {0}, EPERM},
	{"setresuid", SYS_setresuid, {-1, -1, -1}, EPERM},
	{"chmod", SYS_fchmodat, {AT_FDCWD, (long)"/nowhere", 0777}, EPERM},
	{"fchmod", SYS_fchmod, {0, 0777}, EPERM},
	{"chown", SYS_fchownat, {AT_FDCWD, (long)"/nowhere", 0, 0, 0}, EPERM},
	{"mknod", SYS_mknodat, {AT_FDCWD, (long)"/nowhere/n", S_IFIFO, 0}, EPERM},
	{"open to write", SYS_openat, {AT_FDCWD, (long)"/dev/null", O_WRONLY}, EPERM},
	{"open to create", SYS_openat, {AT_FDCWD, (long)"/nowhere/n", O_RDONLY | O_CREAT, 0600}, EPERM},
	{"open to truncate", SYS_openat, {AT_FDCWD, (long)"/nowhere/n", O_RDONLY | O_TRUNC}, EPERM},
	{"openat2", SYS_openat2, {AT_FDCWD, (long)"/nowhere/n", (long)&read_how, sizeof(read_how)}, EPERM},
	{"ioctl, typing into a terminal", SYS_ioctl, {0, 0x5412 /* TIOCSTI */, (long)"x"}, EPERM},
	{"reboot", SYS_reboot, {0}, EPERM},
	/* x32's mmap, and what no kernel has yet: as on a kernel without it. */
	{"x32", X32 + 9, {0}, ENOSYS},
	{"of a newer kernel", 4000, {0}, ENOSYS},
};

static const struct attempt all_but_maker_refused[] = {{"clone", SYS_clone, {SIGCHLD}, EPERM}};
static const struct attempt all_but_network_refused[] = {{"clone3", SYS_clone3, {0}, EPERM}};
static const struct attempt all_but_helpers_refused[] = {{"capset", SYS_capset, {0}, EPERM}};

/* Where files are read and put at other levels. */
static const struct attempt sampling_refused[] = {
	{"rename", SYS_renameat, {AT_FDCWD, (long)"/nowhere/a", AT_FDCWD, (long)"/nowhere/b"}, EPERM},
	{"link", SYS_linkat, {AT_FDCWD, (long)"/nowhere/a", AT_FDCWD, (long)"/nowhere/b", 0}, EPERM},
	{"unlink", SYS_unlinkat, {AT_FDCWD, (long)"/nowhere/a", 0}, EPERM},
	{"socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, EPERM},
	{"mprotect, code", SYS_mprotect, {(long)page, sizeof(page), PROT_READ | PROT_EXEC}, EPERM},
	{"mmap, code", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1}, EPERM},
};

/* That it is refused by its arguments, not as a whole. */
static const struct attempt sampling_allowed[] = {
	{"open to read", SYS_openat, {AT_FDCWD, (long)"/nowhere/n", O_RDONLY}, ENOENT},
	{"mprotect", SYS_mprotect, {(long)page, sizeof(page), PROT_READ | PROT_WRITE}, 0},
	{"bpf, look-up", SYS_bpf, {BPF_MAP_LOOKUP_ELEM, 0, 0}, 0},
};

static const struct attempt report_refused[] = {
	{"open", SYS_openat, {AT_FDCWD, (long)"/etc/passwd", O_RDONLY}, EPERM},
	{"stat of a folder", SYS_getdents64, {0}, EPERM},
	{"process_vm_readv", SYS_process_vm_readv, {1}, EPERM},
	{"bpf, look-up", SYS_bpf, {BPF_MAP_LOOKUP_ELEM, 0, 0}, EPERM},
	{"rename", SYS_renameat, {AT_FDCWD, (long)"/nowhere/a", AT_FDCWD, (long)"/nowhere/b"}, EPERM},
	{"unlink", SYS_unlinkat, {AT_FDCWD, (long)"/nowhere/a", 0}, EPERM},
};

/* Files, other sockets than those that are open, and other processes. */
static const struct attempt serving_refused[] = {
	{"open", SYS_openat, {AT_FDCWD, (long)"/proc/self/maps", O_RDONLY}, EPERM},
	{"process_vm_readv", SYS_process_vm_readv, {1}, EPERM},
	{"stat", SYS_newfstatat, {AT_FDCWD, (long)"/proc/1", (long)page, 0}, EPERM},
	{"readlink", SYS_readlinkat, {AT_FDCWD, (long)"/proc/self/exe", (long)page, 10}, EPERM},
	{"socket", SYS_socket, {AF_INET, SOCK_STREAM, 0}, EPERM},
	{"connect", SYS_connect, {-1, (long)page, 16}, EPERM},
	{"bind", SYS_bind, {-1, (long)page, 16}, EPERM},
	{"listen", SYS_listen, {-1, 1}, EPERM},
	{"memfd", SYS_memfd_create, {(long)"x", 0}, EPERM},
	{"bpf, look-up", SYS_bpf, {BPF_MAP_LOOKUP_ELEM, 0, 0}, EPERM},
	{"mmap, code", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1}, EPERM},
};

static const struct attempt serving_allowed[] = {
	{"accept", SYS_accept4, {-1, 0, 0, 0}, EBADF},
	{"sendfile", SYS_sendfile, {-1, -1, 0, 1}, EBADF},
};

/* What changes a thread that is stopped. There is no process 0. */
static const struct attempt freezing_refused[] = {
	{"ptrace, memory", SYS_ptrace, {PTRACE_POKEDATA, 0}, EPERM},
	{"ptrace, registers", SYS_ptrace, {PTRACE_SETREGSET, 0}, EPERM},
	{"ptrace, attach", SYS_ptrace, {PTRACE_ATTACH, 0}, EPERM},
	{"ptrace, kill", SYS_ptrace, {PTRACE_KILL, 0}, EPERM},
	{"socket pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, (long)page}, EPERM},
};

static const struct attempt freezing_allowed[] = {
	{"ptrace, seize", SYS_ptrace, {PTRACE_SEIZE, 0}, ESRCH},
	{"ptrace, interrupt", SYS_ptrace, {PTRACE_INTERRUPT, 0}, ESRCH},
	{"ptrace, detach", SYS_ptrace, {PTRACE_DETACH, 0}, ESRCH},
};

/*
 * The process with the network: no other process, no file but settings, no socket of this machine. Landlock
 * (Linux 5.13) refuses files.
 */
static const struct attempt network_refused[] = {
	{"process_vm_readv", SYS_process_vm_readv, {1}, EPERM},
	{"ptrace, seize", SYS_ptrace, {PTRACE_SEIZE, 1}, EPERM},
	{"kill", SYS_kill, {1, 0}, EPERM},
	{"pidfd_open", SYS_pidfd_open, {1, 0}, EPERM},
	{"bpf, look-up", SYS_bpf, {BPF_MAP_LOOKUP_ELEM, 0, 0}, EPERM},
	{"socket of this machine", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, EAFNOSUPPORT},
	{"socket of packets", SYS_socket, {AF_PACKET, SOCK_RAW, 0}, EAFNOSUPPORT},
	{"a process by clone", SYS_clone, {SIGCHLD, 0, 0}, EPERM},
	{"clone3", SYS_clone3, {0, 0}, ENOSYS},
	{"execve", SYS_execve, {(long)"/bin/true", 0, 0}, EPERM},
	{"memory that is code", SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1}, EPERM},
	{"open to write", SYS_openat, {AT_FDCWD, (long)"/etc/passwd", O_WRONLY}, EPERM},
};

static const struct attempt network_files_refused[] = {
	{"open of itself", SYS_openat, {AT_FDCWD, (long)"/proc/self/status", O_RDONLY}, EACCES},
	{"open of another process", SYS_openat, {AT_FDCWD, (long)"/proc/1/cmdline", O_RDONLY}, EACCES},
	{"open of a file in /tmp", SYS_openat, {AT_FDCWD, (long)"/tmp", O_RDONLY}, EACCES},
};

static const struct attempt network_allowed[] = {
	{"open of settings", SYS_openat, {AT_FDCWD, (long)"/etc/nowhere/n", O_RDONLY}, ENOENT},
	{"connect", SYS_connect, {-1}, EBADF},
};

/* Who raised its priority before must be able to give it back: `dump` does when it takes long. */
static const struct attempt own_priority[] = {
	{"setpriority, own", SYS_setpriority, {PRIO_PROCESS, 0, 19}, 0},
	{"setpriority, another's", SYS_setpriority, {PRIO_PROCESS, 1, 19}, EPERM},
	{"setpriority, a user's", SYS_setpriority, {PRIO_USER, 0, 19}, EPERM},
};

/* Without the sanitizers' own work at the end, which takes calls that are refused. */
static void __attribute__((noreturn)) end(int status)
{
	while (true)
		syscall(SYS_exit_group, status);
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* In the child: says on stdout, the test's, which one was answered otherwise. */
static int try(const struct attempt *attempts, size_t count)
{
	int wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const struct attempt *a = &attempts[i];
		long result;

		errno = 0;
		result = syscall(a->call, a->arguments[0], a->arguments[1], a->arguments[2], a->arguments[3],
				 a->arguments[4], 0);
		if (a->error ? result == -1 && errno == a->error : result == 0 || errno != EPERM)
			continue;
		dprintf(STDOUT_FILENO, "%s: %ld, %s\n", a->name, result, strerror(errno));
		wrong = 1;
	}
	return wrong;
}

/* Without names of what was refused on the test's stderr. */
static int in_child(enum rights_level level, int (*act)(void))
{
	const struct rights_wanted wanted = {.level = level};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct error error;

		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		if (rights_drop(&wanted, &error)) {
			dprintf(STDOUT_FILENO, "%s\n", error.text);
			end(2);
		}
		end(act());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int try_refused(void)
{
	return try(refused, COUNT(refused));
}

static int try_clone(void)
{
	return try(all_but_maker_refused, COUNT(all_but_maker_refused));
}

static int try_clone3(void)
{
	return try(all_but_network_refused, COUNT(all_but_network_refused));
}

static int try_capset(void)
{
	return try(all_but_helpers_refused, COUNT(all_but_helpers_refused));
}

static int try_sampling(void)
{
	/* Before Linux 5.19, bpf(2) may be root's as a whole: its look-up comes last. */
	return try(sampling_refused, COUNT(sampling_refused)) |
	       try(sampling_allowed, COUNT(sampling_allowed) - (geteuid() != 0));
}

static int try_freezing(void)
{
	return try(freezing_refused, COUNT(freezing_refused)) | try(freezing_allowed, COUNT(freezing_allowed));
}

static int try_serving(void)
{
	return try(serving_refused, COUNT(serving_refused)) | try(serving_allowed, COUNT(serving_allowed));
}

static int try_listing(void)
{
	const struct attempt attempt = {"ptrace, seize", SYS_ptrace, {PTRACE_SEIZE, 0}, EPERM};

	return try(&attempt, 1);
}

static int try_network(void)
{
	int wrong = try(network_refused, COUNT(network_refused)) | try(network_allowed, COUNT(network_allowed));

	return rights_landlock_version() < 1 ? wrong : wrong | try(network_files_refused, COUNT(network_files_refused));
}

static int try_priority(void)
{
	return try(own_priority, COUNT(own_priority));
}

static int try_report(void)
{
	return try(report_refused, COUNT(report_refused));
}

static void test_refused_at_every_level(void **unused)
{
	(void)unused;
	for (int level = 0; level < RIGHTS_LEVELS; level++) {
		assert_int_equal(in_child((enum rights_level)level, try_refused), 0);
		if (level != RIGHTS_NETWORK_KEEPER && level != RIGHTS_NETWORK)
			assert_int_equal(in_child((enum rights_level)level, try_clone3), 0);
		/* The one keeps helpers, the others the process with the network and the one that serves. */
		if (level != RIGHTS_FORKSERVER && level != RIGHTS_NETWORK_KEEPER && level != RIGHTS_SERVE_KEEPER)
			assert_int_equal(in_child((enum rights_level)level, try_clone), 0);
		if (level != RIGHTS_FORKSERVER && level != RIGHTS_HELPER && level != RIGHTS_NETWORK_KEEPER &&
		    level != RIGHTS_SERVE_KEEPER)
			assert_int_equal(in_child((enum rights_level)level, try_capset), 0);
	}
}

static void test_refused_by_arguments(void **unused)
{
	(void)unused;
	assert_int_equal(in_child(RIGHTS_SAMPLE, try_sampling), 0);
	assert_int_equal(in_child(RIGHTS_REPORT, try_report), 0);
	assert_int_equal(in_child(RIGHTS_FREEZE, try_freezing), 0);
	assert_int_equal(in_child(RIGHTS_LIST, try_listing), 0);
	assert_int_equal(in_child(RIGHTS_NETWORK, try_network), 0);
	assert_int_equal(in_child(RIGHTS_SERVE, try_serving), 0);
	assert_int_equal(in_child(RIGHTS_SERVE_KEEPER, try_serving), 0);
}

static void test_own_priority(void **unused)
{
	static const enum rights_level levels[] = {RIGHTS_SAMPLE, RIGHTS_LIST, RIGHTS_FREEZE, RIGHTS_FORKSERVER,
						   RIGHTS_HELPER};

	(void)unused;
	for (size_t i = 0; i < COUNT(levels); i++)
		assert_int_equal(in_child(levels[i], try_priority), 0);
}

static int look(void)
{
	struct rights_left left;
	struct rlimit limit;

	rights_read(&left);
	if (!left.no_new_privs || !left.filtered)
		return 1;
	/* Not asked for by any level. */
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 || errno != EPERM;
}

static int abort_now(void)
{
	abort();
}

static void test_what_is_left(void **unused)
{
	int status;

	(void)unused;
	assert_int_equal(in_child(RIGHTS_SAMPLE, look), 0);
	/* An end by abort() looks like one: cores, and the shell's message. */
	status = in_child(RIGHTS_REPORT, abort_now);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* A call that was forgotten is named once, so that it can be reported; the process goes on. */
static void test_refusal_is_told(void **unused)
{
	const struct rights_wanted wanted = {.level = RIGHTS_SAMPLE};
	struct error error;
	char said[512] = "", number[32];
	int ends[2], status;
	const char *first;
	pid_t pid;

	(void)unused;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		if (rights_drop(&wanted, &error))
			end(2);
		for (int i = 0; i < 3; i++) {
			if (syscall(SYS_unshare, 0) != -1 || errno != EPERM)
				end(1);
		}
		end(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(read(ends[0], said, sizeof(said) - 1) > 0);
	close(ends[0]);
	snprintf(number, sizeof(number), "call %d was refused", SYS_unshare);
	first = strstr(said, number);
	assert_non_null(first);
	assert_null(strstr(first + 1, number));
}

static int become_nobody(void)
{
	struct rights_left left;
	struct error error;
	uid_t r, e, s;

	if (rights_become_nobody(&error) || getresuid(&r, &e, &s) || r == 0 || e != r || s != r || getgroups(0, NULL))
		return 1;
	rights_read(&left);
	if (left.capabilities || left.bounding || prctl(PR_GET_DUMPABLE))
		return 2;
	return setuid(0) && setgid(0) && setgroups(0, NULL) ? 0 : 3;
}

static void test_nobody(void **unused)
{
	pid_t pid;
	int status;

	(void)unused;
	if (geteuid())
		skip();
	pid = fork();
	if (pid == 0)
		end(become_nobody());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Only the command gets signals. */
static void test_signals_for_the_command(void **unused)
{
	struct rights_wanted wanted = {.level = RIGHTS_SAMPLE};
	pid_t command = fork(), pid;
	int status;
	struct error error;

	(void)unused;
	if (command == 0) {
		pause();
		end(0);
	}
	wanted.command = command;
	pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		if (rights_drop(&wanted, &error))
			end(2);
		if (!kill(getppid(), 0) || errno != EPERM)
			end(1);
		end(kill(command, SIGTERM) ? 3 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(command, SIGKILL);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(command, &status, 0), command);
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static char inside[] = "/tmp/pybpf-rights-in-XXXXXX", outside[] = "/tmp/pybpf-rights-out-XXXXXX";

static int folder, inode;

static int put_files(void)
{
	char away[64], nameless[32];

	snprintf(away, sizeof(away), "%s/a", outside);
	snprintf(nameless, sizeof(nameless), "/proc/self/fd/%d", inode);
	/* As outputs are: a file without a name gets one, which replaces another. */
	if (linkat(AT_FDCWD, nameless, folder, "b", AT_SYMLINK_FOLLOW) || renameat(folder, "b", folder, "a"))
		return 1;
	/* Not out of the folder, and nothing that lies elsewhere. */
	if (!renameat(folder, "a", AT_FDCWD, away) || !unlinkat(AT_FDCWD, away, 0))
		return 2;
	return unlinkat(folder, "a", 0) ? 3 : 0;
}

static void make(const char *place)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/a", place);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void test_landlock(void **unused)
{
	int status;
	struct rights_wanted wanted = {.level = RIGHTS_COMMIT, .folders = &folder, .nr_folders = 1};
	struct error error;
	char path[64];
	pid_t pid;

	(void)unused;
	if (rights_landlock_version() < 0)
		skip();
	assert_non_null(mkdtemp(inside));
	assert_non_null(mkdtemp(outside));
	make(inside);
	make(outside);
	folder = open(inside, O_PATH | O_DIRECTORY);
	assert_true(folder >= 0);
	inode = open(inside, O_TMPFILE | O_WRONLY, 0600);
	assert_true(inode >= 0);
	pid = fork();
	if (pid == 0) {
		if (rights_drop(&wanted, &error))
			end(9);
		end(put_files());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(folder);
	close(inode);
	assert_int_equal(status, 0);
	snprintf(path, sizeof(path), "%s/a", outside);
	assert_int_equal(unlink(path), 0);
	rmdir(inside);
	rmdir(outside);
}

static void test_names(void **unused)
{
	char text[64];

	(void)unused;
	rights_name(0, text, sizeof(text));
	assert_string_equal(text, "none");
	rights_name(UINT64_C(1) << 39 | UINT64_C(1) << 19, text, sizeof(text));
	assert_string_equal(text, "CAP_SYS_PTRACE, CAP_BPF");
	rights_name(UINT64_C(1) << 63, text, sizeof(text));
	assert_string_equal(text, "capability 63");
	rights_name(UINT64_MAX, text, 12);
	assert_int_equal(strlen(text), 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_at_every_level),
		cmocka_unit_test(test_refused_by_arguments),
		cmocka_unit_test(test_own_priority),
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_refusal_is_told),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_signals_for_the_command),
		cmocka_unit_test(test_landlock),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
