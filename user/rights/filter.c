// SPDX-License-Identifier: Apache-2.0
/*
 * A seccomp filter that allows the system calls of a level. Any other call fails with EPERM and is named on stderr,
 * instead of ending the process: a call that is missing here must not cost a profile, and should be reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "rights/internal.h"

#if defined(__x86_64__)
#define ARCH                   AUDIT_ARCH_X86_64
#define SET_RESULT(context, x) ((context)->uc_mcontext.gregs[REG_RAX] = (x))
#elif defined(__aarch64__)
#define ARCH                   AUDIT_ARCH_AARCH64
#define SET_RESULT(context, x) ((context)->uc_mcontext.regs[0] = (unsigned long long)(x))
#endif

/*
 * set_mempolicy_home_node (Linux 5.17). Newer calls fail with ENOSYS, as on a kernel without them: libraries know what
 * to do then. So do x32's calls, whose numbers begin at 0x40000000.
 */
#define NEWEST_CALL 450

/* SYS_SECCOMP of include/uapi/asm-generic/siginfo.h, which glibc 2.36 does not have. */
#define BY_SECCOMP 1

#define S RIGHTS_IN(RIGHTS_SAMPLE)
#define F RIGHTS_IN(RIGHTS_FREEZE)
#define L (RIGHTS_IN(RIGHTS_LIST) | F)
#define R RIGHTS_IN(RIGHTS_REPORT)
#define K RIGHTS_IN(RIGHTS_COMMIT)
#define E RIGHTS_IN(RIGHTS_KEEP)
/* A helper's filter comes on top of its forkserver's. */
#define M RIGHTS_IN(RIGHTS_FORKSERVER)
#define H (RIGHTS_IN(RIGHTS_HELPER) | M)
/* So does the filter of the process with the network, on top of its keeper's. */
#define P RIGHTS_IN(RIGHTS_NETWORK_KEEPER)
#define N (RIGHTS_IN(RIGHTS_NETWORK) | P)
/* And that of the process that serves. */
#define C   RIGHTS_IN(RIGHTS_SERVE_KEEPER)
#define W   (RIGHTS_IN(RIGHTS_SERVE) | C)
#define O   RIGHTS_IN(RIGHTS_OPEN)
#define ANY (S | L | R | K | E | H | N | W | O)

struct rule {
	int call;
	unsigned levels;
	/*
	 * Allowed only if (argument & mask) == value, for the argument's lower half, which is all of an int; mask 0:
	 * always.
	 */
	uint8_t argument;
	uint32_t mask, value;
};

/* A call may have several rules. The most frequent calls come first. */
static const struct rule rules[] = {
	{SYS_read, ANY, 0, 0, 0},
	{SYS_pread64, H | L | N, 0, 0, 0},
	{SYS_process_vm_readv, H, 0, 0, 0},
	/*
	 * Opens for reading only: files to be written are open already. O_CREAT and O_TRUNC are refused too, as they
	 * have an effect without an access mode for writing. openat2 is not allowed at any level: its flags are in
	 * memory, where a filter cannot look.
	 */
	{SYS_openat, S | L | H | N, 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
	{SYS_close, ANY, 0, 0, 0},
	{SYS_newfstatat, S | L | R | K | E | H | N, 0, 0, 0},
	{SYS_fstat, ANY, 0, 0, 0},
	{SYS_statx, S | L | H | N, 0, 0, 0},
	{SYS_statfs, S | L | H, 0, 0, 0},
	{SYS_fstatfs, S | L | H, 0, 0, 0},
	{SYS_readlinkat, S | L | H | N, 0, 0, 0},
	{SYS_faccessat, S | L | H | N, 0, 0, 0},
	{SYS_faccessat2, S | L | H | N, 0, 0, 0},
	{SYS_getdents64, S | L | E | H | N, 0, 0, 0},
	{SYS_getcwd, S | L | H, 0, 0, 0},
#ifdef SYS_readlink
	{SYS_readlink, S | L | H | N, 0, 0, 0},
	{SYS_access, S | L | H | N, 0, 0, 0},
#endif
	{SYS_write, ANY, 0, 0, 0},
	{SYS_writev, ANY, 0, 0, 0},
	{SYS_readv, S | L | R | E | H, 0, 0, 0},
	{SYS_lseek, ANY, 0, 0, 0},
	{SYS_ftruncate, S | N, 0, 0, 0},
	{SYS_fsync, ANY, 0, 0, 0},
	{SYS_fdatasync, ANY, 0, 0, 0},
	{SYS_sendmsg, ANY, 0, 0, 0},
	{SYS_recvmsg, ANY, 0, 0, 0},
	{SYS_sendto, ANY, 0, 0, 0},
	{SYS_recvfrom, ANY, 0, 0, 0},
	{SYS_fcntl, ANY, 1, ~0u, F_GETFD},
	{SYS_fcntl, ANY, 1, ~0u, F_SETFD},
	{SYS_fcntl, ANY, 1, ~0u, F_GETFL},
	{SYS_fcntl, ANY, 1, ~0u, F_DUPFD_CLOEXEC},
	{SYS_ioctl, ANY, 1, ~0u, TCGETS},
	{SYS_ioctl, ANY, 1, ~0u, TIOCGWINSZ},
	{SYS_ioctl, S, 1, ~0u, TIOCGPGRP},
	/* top takes a terminal, and gives it back as it was. */
	{SYS_ioctl, S, 1, ~0u, TCSETS},
	{SYS_ioctl, S, 1, ~0u, TCSETSW},
	{SYS_ioctl, S, 1, ~0u, TCSETSF},
	{SYS_ioctl, S, 1, ~0u, PERF_EVENT_IOC_PERIOD},
	{SYS_ioctl, S, 1, ~0u, PERF_EVENT_IOC_DISABLE},

	{SYS_clock_gettime, ANY, 0, 0, 0},
	{SYS_clock_getres, ANY, 0, 0, 0},
	{SYS_gettimeofday, ANY, 0, 0, 0},
	{SYS_clock_nanosleep, S | L | H | N | C, 0, 0, 0},
	{SYS_nanosleep, S | L | H | N | C, 0, 0, 0},
	{SYS_ppoll, ANY, 0, 0, 0},
	{SYS_epoll_pwait, S | L | W, 0, 0, 0},
	{SYS_epoll_ctl, S | L | W, 0, 0, 0},
#ifdef SYS_poll
	{SYS_poll, ANY, 0, 0, 0},
	{SYS_epoll_wait, S | L | W, 0, 0, 0},
	{SYS_time, ANY, 0, 0, 0},
#endif
	{SYS_signalfd4, S, 0, 0, 0},

	/*
	 * Uses open maps only: a program cannot be loaded, or anything attached any more, nor a map made unless
	 * makes_maps says so.
	 */
	{SYS_bpf, S, 0, ~0u, BPF_MAP_LOOKUP_ELEM},
	{SYS_bpf, S, 0, ~0u, BPF_MAP_UPDATE_ELEM},
	{SYS_bpf, S, 0, ~0u, BPF_MAP_DELETE_ELEM},
	{SYS_bpf, S, 0, ~0u, BPF_MAP_GET_NEXT_KEY},
	{SYS_bpf, S, 0, ~0u, BPF_MAP_LOOKUP_BATCH},
	{SYS_bpf, S, 0, ~0u, BPF_MAP_LOOKUP_AND_DELETE_BATCH},
	{SYS_bpf, S, 0, ~0u, BPF_OBJ_GET_INFO_BY_FD},

	/* Opens events, and attaches programs that are loaded to them. */
	{SYS_perf_event_open, O, 1, ~0u, ~0u},
	{SYS_bpf, O, 0, ~0u, BPF_LINK_CREATE},
	{SYS_ioctl, O, 1, ~0u, PERF_EVENT_IOC_SET_BPF},
	{SYS_ioctl, O, 1, ~0u, PERF_EVENT_IOC_ENABLE},

	/* No memory becomes code. */
	{SYS_mmap, S | R | K | E | H | N | W | O, 2, PROT_EXEC, 0},
	{SYS_mprotect, S | R | K | E | H | N | W | O, 2, PROT_EXEC, 0},
	/* What is handed to the process with the network, to the one that serves, or to the one that keeps files. */
	{SYS_memfd_create, S | R, 0, 0, 0},
	{SYS_munmap, ANY, 0, 0, 0},
	{SYS_mremap, ANY, 0, 0, 0},
	{SYS_madvise, ANY, 0, 0, 0},
	{SYS_brk, ANY, 0, 0, 0},
	{SYS_futex, ANY, 0, 0, 0},
	{SYS_rt_sigaction, ANY, 0, 0, 0},
	{SYS_rt_sigprocmask, ANY, 0, 0, 0},
	{SYS_rt_sigreturn, ANY, 0, 0, 0},
	{SYS_rt_sigpending, ANY, 0, 0, 0},
	{SYS_rt_sigtimedwait, S, 0, 0, 0},
	/* Signals helpers, whose descriptors come from the forkserver; these levels cannot make one for another
	   process. */
	{SYS_pidfd_send_signal, S | L, 0, 0, 0},
	/* Used by the sanitizers' run-time. */
	{SYS_sigaltstack, ANY, 0, 0, 0},
	{SYS_restart_syscall, ANY, 0, 0, 0},
	{SYS_wait4, ANY, 0, 0, 0},
	{SYS_waitid, ANY, 0, 0, 0},
	{SYS_exit, ANY, 0, 0, 0},
	{SYS_exit_group, ANY, 0, 0, 0},

	{SYS_getpid, ANY, 0, 0, 0},
	{SYS_gettid, ANY, 0, 0, 0},
	{SYS_getuid, ANY, 0, 0, 0},
	{SYS_geteuid, ANY, 0, 0, 0},
	{SYS_getgid, ANY, 0, 0, 0},
	{SYS_getegid, ANY, 0, 0, 0},
	{SYS_capget, ANY, 0, 0, 0},
	{SYS_getrandom, ANY, 0, 0, 0},
	{SYS_getrusage, S, 0, 0, 0},
	{SYS_uname, ANY, 0, 0, 0},
	{SYS_sysinfo, ANY, 0, 0, 0},
	{SYS_sched_getaffinity, S, 0, 0, 0},
	{SYS_sched_yield, ANY, 0, 0, 0},
	/* doctor reads what is left; so do libraries that know the names of users (libcap, when it is loaded). */
	{SYS_prctl, S | L, 0, ~0u, PR_CAPBSET_READ},
	{SYS_prctl, S, 0, ~0u, PR_GET_NO_NEW_PRIVS},
	{SYS_prctl, S, 0, ~0u, PR_GET_SECCOMP},

	/* Names of users come from libraries that /etc/nsswitch.conf names, which ask daemons. */
	{SYS_mmap, L, 0, 0, 0},
	{SYS_mprotect, L, 0, 0, 0},
	{SYS_socket, L, 0, 0, 0},
	{SYS_connect, L, 0, 0, 0},

	/* libcurl asks for names in a thread, by libraries that /etc/nsswitch.conf names; code comes only from files.
	 */
	{SYS_socket, N, 0, ~0u, AF_INET},
	{SYS_socket, N, 0, ~0u, AF_INET6},
	{SYS_socket, N, 0, ~0u, AF_NETLINK},
	{SYS_mmap, N, 3, MAP_ANONYMOUS, 0},
	{SYS_clone, N, 0, CLONE_THREAD, CLONE_THREAD},
	{SYS_connect, N, 0, 0, 0},
	{SYS_bind, N, 0, 0, 0},
	{SYS_getsockopt, N, 0, 0, 0},
	{SYS_setsockopt, N, 0, 0, 0},
	{SYS_getsockname, N, 0, 0, 0},
	{SYS_getpeername, N, 0, 0, 0},
	{SYS_sendmmsg, N, 0, 0, 0},
	{SYS_shutdown, N, 0, 0, 0},
	{SYS_socketpair, N, 0, 0, 0},
	{SYS_eventfd2, N, 0, 0, 0},
	{SYS_pipe2, N, 0, 0, 0},
	{SYS_fcntl, N, 1, ~0u, F_SETFL},
	{SYS_ioctl, N, 1, ~0u, FIONREAD},
	{SYS_ioctl, N, 1, ~0u, FIONBIO},
	{SYS_set_robust_list, N, 0, 0, 0},
	{SYS_rseq, N, 0, 0, 0},
	{SYS_prlimit64, N, 0, 0, 0},
	{SYS_sched_getaffinity, N, 0, 0, 0},
	{SYS_prctl, N, 0, ~0u, PR_SET_NAME},
	{SYS_pwrite64, N, 0, 0, 0},
	/* Its keeper forks it and confines it. */
	{SYS_clone, P, 0, 0, 0},
	{SYS_prctl, P, 0, 0, 0},
	{SYS_capset, P, 0, 0, 0},
	{SYS_seccomp, P, 0, 0, 0},
	{SYS_landlock_create_ruleset, P, 0, 0, 0},
	{SYS_landlock_add_rule, P, 0, 0, 0},
	{SYS_landlock_restrict_self, P, 0, 0, 0},
	{SYS_getppid, P, 0, 0, 0},
	/* Clients come by the socket that listens: no other is made, and none connected. */
	{SYS_accept4, W, 0, 0, 0},
	{SYS_sendfile, W, 0, 0, 0},
	{SYS_shutdown, W, 0, 0, 0},
	{SYS_getsockname, W, 0, 0, 0},
	{SYS_getsockopt, W, 0, 0, 0},
	{SYS_setsockopt, W, 0, 0, 0},
	/* Its keeper forks the process that serves, which prepares libmicrohttpd before it confines itself. */
	{SYS_clone, C, 0, 0, 0},
	{SYS_prctl, C, 0, 0, 0},
	{SYS_capset, C, 0, 0, 0},
	{SYS_seccomp, C, 0, 0, 0},
	{SYS_getppid, C, 0, 0, 0},
	{SYS_set_robust_list, C, 0, 0, 0},
	{SYS_epoll_create1, C, 0, 0, 0},
	{SYS_eventfd2, C, 0, 0, 0},

	/* Stops threads and reads how they stopped: what they do is not changed. */
	{SYS_ptrace, F, 0, ~0u, PTRACE_SEIZE},
	{SYS_ptrace, F, 0, ~0u, PTRACE_INTERRUPT},
	{SYS_ptrace, F, 0, ~0u, PTRACE_GETREGSET},
	{SYS_ptrace, F, 0, ~0u, PTRACE_DETACH},

	{SYS_setitimer, H, 0, 0, 0},
	/* Set again after taking over another user's rights, which undoes it. */
	{SYS_prctl, H, 0, ~0u, PR_SET_PDEATHSIG},
	{SYS_getppid, H, 0, 0, 0},
	{SYS_getpgid, S, 0, 0, 0},
#ifdef SYS_getpgrp
	{SYS_getpgrp, S, 0, 0, 0},
#endif

	/* A helper opens a source as the user whose program ran it. */
	{SYS_setfsuid, H, 0, 0, 0},
	{SYS_setfsgid, H, 0, 0, 0},
	{SYS_setgroups, H, 0, 0, 0},
	{SYS_capset, H, 0, 0, 0},

	/* The forkserver makes a helper, confines it, and hands it on. */
	{SYS_clone, M, 0, 0, 0},
	{SYS_socketpair, M, 0, 0, 0},
	{SYS_pidfd_open, M, 0, 0, 0},
	{SYS_prctl, M, 0, 0, 0},
	{SYS_prlimit64, M, 0, 0, 0},
	{SYS_close_range, M, 0, 0, 0},
	{SYS_dup3, M, 0, 0, 0},
	{SYS_chdir, M, 0, 0, 0},
	{SYS_seccomp, M, 0, 0, 0},
	{SYS_set_robust_list, M, 0, 0, 0},
#ifdef SYS_dup2
	{SYS_dup2, M, 0, 0, 0},
	{SYS_fork, M, 0, 0, 0},
#endif

	/* Landlock limits the folders where these work. */
	{SYS_linkat, K, 0, 0, 0},
	{SYS_renameat, K | E, 0, 0, 0},
	{SYS_unlinkat, K | E, 0, 0, 0},
};

/* A rule takes seven instructions at most; four are made for a process's own numbers. */
#define RULES            (sizeof(rules) / sizeof(*rules))
#define OWN_RULES        7
#define INSTRUCTIONS_MAX (8 + 7 * (RULES + OWN_RULES))

struct filter {
	struct sock_filter code[INSTRUCTIONS_MAX];
	unsigned short count;
};

static void emit(struct filter *f, struct sock_filter instruction)
{
	f->code[f->count++] = instruction;
}

static void load_word(struct filter *f, size_t offset)
{
	emit(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void say(struct filter *f, uint32_t action)
{
	emit(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void allow(struct filter *f, const struct rule *rule)
{
	size_t argument = offsetof(struct seccomp_data, args) + rule->argument * sizeof(uint64_t);

	load_word(f, offsetof(struct seccomp_data, nr));
	emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rule->call, 0, rule->mask ? 4 : 1));
	if (rule->mask) {
		/* Both architectures are little-endian: the lower half comes first. */
		load_word(f, argument);
		emit(f, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->mask));
		emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->value, 0, 1));
	}
	say(f, SECCOMP_RET_ALLOW);
}

/* Allows changes of this process's own priority only: setpriority(PRIO_PROCESS, 0, ...), where both arguments are 0. */
static void allow_own_priority(struct filter *f)
{
	load_word(f, offsetof(struct seccomp_data, nr));
	emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpriority, 0, 5));
	for (size_t i = 0; i < 2; i++) {
		load_word(f, offsetof(struct seccomp_data, args) + i * sizeof(uint64_t));
		emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, i ? 1 : 3));
	}
	say(f, SECCOMP_RET_ALLOW);
}

/* Makes a call fail without a message: the C library asks for it, and does without it. */
static void refuse_quietly(struct filter *f, int call, int error)
{
	load_word(f, offsetof(struct seccomp_data, nr));
	emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1));
	say(f, SECCOMP_RET_ERRNO | (uint32_t)error);
}

static void build(struct filter *f, const struct rights_wanted *wanted)
{
	/* abort() sends its signal to itself. */
	const struct rule self = {SYS_tgkill, ANY, 0, ~0u, (uint32_t)getpid()};
	const struct rule command = {SYS_kill, S, 0, ~0u, (uint32_t)wanted->command};
	/* Landlock limits the folder to which "..", and links, may lead from there. */
	const struct rule in_folder = {SYS_openat, E, 0, ~0u, wanted->nr_folders ? (uint32_t)wanted->folders[0] : 0};
	const struct rule make_map = {SYS_bpf, S, 0, ~0u, BPF_MAP_CREATE};

	load_word(f, offsetof(struct seccomp_data, arch));
	emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	/*
	 * Another entry into the kernel (int 0x80), where the numbers mean other calls. This program does not use it.
	 */
	say(f, SECCOMP_RET_KILL_PROCESS);
	load_word(f, offsetof(struct seccomp_data, nr));
	emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_CALL, 0, 1));
	say(f, SECCOMP_RET_ERRNO | ENOSYS);
	for (size_t i = 0; i < RULES; i++) {
		if (rules[i].levels & RIGHTS_IN(wanted->level))
			allow(f, &rules[i]);
	}
	allow(f, &self);
	if (RIGHTS_IN(wanted->level) & (S | L | H))
		allow_own_priority(f);
	if (wanted->command && wanted->level == RIGHTS_SAMPLE)
		allow(f, &command);
	if (wanted->makes_maps && wanted->level == RIGHTS_SAMPLE)
		allow(f, &make_map);
	if (wanted->nr_folders && wanted->level == RIGHTS_KEEP)
		allow(f, &in_folder);
	if (RIGHTS_IN(wanted->level) & N) {
		/* Its flags are in memory, where a filter cannot look: threads are made by clone in place of it. */
		refuse_quietly(f, SYS_clone3, ENOSYS);
		/* Sockets of this machine, such as those of daemons for names. */
		refuse_quietly(f, SYS_socket, EAFNOSUPPORT);
	}
	say(f, SECCOMP_RET_TRAP);
}

/*
 * Handles SIGSYS in place of a refused call, at any point of the program: it must not call library functions that take
 * a lock or memory.
 */
static void on_refused(int signo, siginfo_t *info, void *context)
{
	static bool reported[NEWEST_CALL + 1];
	static const char head[] = "pybpf: system call ", tail[] = " was refused: pybpf gave it up; please report it\n";
	char text[sizeof(head) + sizeof(tail) + 16], digits[16];
	size_t at = sizeof(head) - 1, n = 0;
	unsigned call = (unsigned)info->si_syscall;

	/* A SIGSYS that a process sent ends this process, as it does without this handler. */
	if (info->si_code != BY_SECCOMP) {
		signal(signo, SIG_DFL);
		raise(signo);
		return;
	}
	SET_RESULT((ucontext_t *)context, -EPERM);
	if (call > NEWEST_CALL || reported[call])
		return;
	reported[call] = true;
	memcpy(text, head, at);
	do
		digits[n++] = (char)('0' + call % 10);
	while (call /= 10);
	while (n)
		text[at++] = digits[--n];
	memcpy(text + at, tail, sizeof(tail) - 1);
	if (write(STDERR_FILENO, text, at + sizeof(tail) - 1) < 0)
		return;
}

int rights_filter_install(const struct rights_wanted *wanted)
{
	const struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO};
	struct filter *f = calloc(1, sizeof(*f));
	struct sock_fprog program;
	int err = 0;

	if (!f)
		return -ENOMEM;
	build(f, wanted);
	program = (struct sock_fprog){.len = f->count, .filter = f->code};
	if (sigaction(SIGSYS, &action, NULL) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		err = -errno;
	free(f);
	return err;
}
