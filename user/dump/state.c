// SPDX-License-Identifier: Apache-2.0
/* Reads what a thread does from its files in /proc: stat, syscall, status, and the descriptor of its system call. */
#include "dump/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/procfs_sockets.h"
#include "base/remote.h"
#include "base/process_source.h"
#include "helper/helper.h"
#include "kernel/calls.h"
#include "session/waits/wait_name.h"

/* The thread whose system call is described. */
struct caller {
	pid_t pid, tid;
	bool uninterruptible;
	uint64_t socket;
};
#define WAIT_THREAD struct caller
#include "wait_call.h"

/* Longest wait for an answer: it takes a fraction of a millisecond, unless the machine is very busy. */
#define PATIENCE_S 1.0
/*
 * Longest time for the peers of a process's unix sockets: one takes microseconds, unless somebody has made very many
 * sockets, which the kernel goes through one by one.
 */
#define PEERS_NS 500000000ull
/* Room for /proc/PID/task/TID/status: its longest lines are of CPUs and memory nodes. */
#define STATUS_MAX (64 * 1024)

struct question {
	pid_t pid, tid;
	struct dump_stop stop;
};

/* Writes the name of a file from the target of its link: without folders, and without the kernel's "anon_inode:". */
static void describe_name(struct pybpf_wait *wait, const char *target)
{
	static const char anonymous[] = "anon_inode:";
	const char *slash = strrchr(target, '/');

	if (slash)
		target = slash + 1;
	else if (!strncmp(target, anonymous, sizeof(anonymous) - 1))
		target += sizeof(anonymous) - 1;
	session_set_wait_text(wait, target, strlen(target));
}

/*
 * Describes the process of a pidfd, as a child if it is one. Its PID is that in /proc's own namespace; a negative one
 * that of a process that is gone.
 */
static void describe_process(struct pybpf_wait *wait, const struct caller *thread, unsigned fd)
{
	char name[64], text[1024];
	struct procfs_stat stat;
	const char *line;
	long pid;

	wait->file = PYBPF_FILE_PROCESS;
	snprintf(name, sizeof(name), "task/%d/fdinfo/%u", thread->tid, fd);
	line = procfs_read_some(thread->pid, name, text, sizeof(text)) > 0 ? strstr(text, "\nPid:") : NULL;
	pid = line ? strtol(line + strlen("\nPid:"), NULL, 10) : 0;
	if (pid <= 0 || pid > INT_MAX)
		return;
	wait->number = (uint32_t)pid;
	if (!procfs_read_stat((pid_t)pid, &stat) && stat.ppid == thread->pid)
		wait->state = PYBPF_STATE_CHILD;
}

static bool is_pidfd(const char *target)
{
	/* A file system of its own since Linux 6.9 (cb12fd8e0dab). */
	return !strncmp(target, "pidfd:[", strlen("pidfd:[")) || !strcmp(target, "anon_inode:[pidfd]");
}

static __always_inline void wait_describe_descriptor(struct pybpf_wait *wait, struct caller *thread, __u32 fd)
{
	char path[64], target[4096];
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%u", thread->pid, thread->tid, fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0 || stat(path, &st))
		return;
	target[n] = '\0';
	if (is_pidfd(target)) {
		describe_process(wait, thread, fd);
	} else if (S_ISSOCK(st.st_mode)) {
		wait->state = PYBPF_STATE_NETWORK;
		thread->socket = st.st_ino;
	} else if (S_ISFIFO(st.st_mode)) {
		wait->state = PYBPF_STATE_PIPE;
		wait->file = PYBPF_FILE_PIPE;
	} else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode)) {
		wait->state = PYBPF_STATE_DISK;
		wait->file = PYBPF_FILE_REGULAR;
		describe_name(wait, target);
	} else if (S_ISCHR(st.st_mode)) {
		wait->state = PYBPF_STATE_PIPE;
		wait->file = PYBPF_FILE_DEVICE;
		describe_name(wait, target);
	} else {
		wait->file = PYBPF_FILE_ANONYMOUS;
		describe_name(wait, target);
	}
}

static __always_inline __s32 wait_first_polled(struct caller *thread, __u64 array)
{
	__s32 fd;

	return remote_read(thread->pid, array, &fd, sizeof(fd)) ? -1 : fd;
}

static __always_inline __u64 wait_clone_flags(struct caller *thread, __u64 clone_args)
{
	__u64 flags = 0;

	return remote_read(thread->pid, clone_args, &flags, sizeof(flags)) ? 0 : flags;
}

static __always_inline bool wait_is_for_disk(struct caller *thread)
{
	return thread->uninterruptible;
}

/* The kernel says only in which of its functions a thread sleeps. */
static __always_inline bool wait_is_for_memory(struct caller *thread)
{
	/* mem_cgroup_handle_over_high() of mm/memcontrol.c, with underscores before it since 6.18; mm/vmscan.c */
	static const char *const functions[] = {"mem_cgroup_handle_over_high", "reclaim_throttle"};
	char name[64], function[128];

	snprintf(name, sizeof(name), "task/%d/wchan", thread->tid);
	if (!thread->uninterruptible || procfs_read_some(thread->pid, name, function, sizeof(function)) <= 0)
		return false;
	return strstr(function, functions[0]) || strstr(function, functions[1]);
}

static __always_inline bool wait_has_our_pids(struct caller *thread)
{
	struct stat own, its;
	char path[64];

	if (process_source_of(thread->pid))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", thread->pid);
	return !stat("/proc/self/ns/pid", &own) && !stat(path, &its) && own.st_ino == its.st_ino;
}

/* Reads the system call of a thread, as procfs_read_call() does. */
static int find_call(const struct caller *thread, const struct dump_stop *stop, struct procfs_call *out)
{
	if (!stop->call.stack_pointer)
		return procfs_read_call(thread->pid, thread->tid, out);
	*out = stop->call;
	return 0;
}

/* Reads the system call that the thread sleeps in. Returns 0, or -EAGAIN if it runs. */
static int read_call(struct caller *thread, const struct dump_stop *stop, struct dump_state *out)
{
	uint8_t calls[PYBPF_MAX_SYSCALL + 1];
	unsigned long long args[3], futex = 0; /* __u64 of both sides */
	struct procfs_call call;
	int err = find_call(thread, stop, &call);

	if (err == -EAGAIN)
		return err;
	if (err) {
		out->wait.state = PYBPF_STATE_OTHER;
		return 0;
	}
	out->stack_pointer = call.stack_pointer;
	out->pc = call.pc;
	for (size_t i = 0; i < sizeof(args) / sizeof(*args); i++)
		args[i] = call.args[i];
	kernel_fill_calls(calls);
	out->wait.call = call.number < 0                   ? PYBPF_CALL_FAULT
			 : call.number > PYBPF_MAX_SYSCALL ? PYBPF_CALL_OTHER
							   : calls[call.number];
	wait_describe_call(&out->wait, thread, call.number, args, &futex);
	out->futex = futex;
	/* futex(2): the fourth argument is the timeout. */
	out->has_limit = futex && call.args[3];
	out->socket = out->wait.state == PYBPF_STATE_NETWORK ? thread->socket : 0;
	return 0;
}

static int read_switches(const struct caller *thread, struct dump_state *out)
{
	char name[64], *text;
	int err;

	/* A thread of a core file does not run. */
	if (process_source_of(thread->pid))
		return 0;
	snprintf(name, sizeof(name), "task/%d/status", thread->tid);
	err = procfs_read(thread->pid, name, STATUS_MAX, &text, NULL);
	if (err)
		return err;
	out->sleeps = procfs_status_number(text, "\nvoluntary_ctxt_switches:");
	out->preemptions = procfs_status_number(text, "\nnonvoluntary_ctxt_switches:");
	free(text);
	return 0;
}

/* Returns whether the thread runs; what a tracer has stopped would do so if it were not. */
static bool runs(enum dump_stopped stopped, char state)
{
	return stopped == DUMP_NOT_STOPPED ? state == 'R' : stopped == DUMP_STOPPED_RUNNING;
}

static bool is_stopped(enum dump_stopped stopped, char state)
{
	return stopped == DUMP_NOT_STOPPED ? state == 'T' || state == 't' : stopped == DUMP_STOPPED_BY_SIGNAL;
}

int dump_look_at_state(pid_t pid, pid_t tid, const struct dump_stop *stop, struct dump_state *out)
{
	struct caller thread = {.pid = pid, .tid = tid};
	struct procfs_call call = {.stack_pointer = 0};
	struct procfs_stat stat;
	int err;

	memset(out, 0, sizeof(*out));
	err = procfs_read_task_stat(pid, tid, &stat) ?: read_switches(&thread, out);
	if (err)
		return err;
	out->ended = strchr("ZXx", stat.state);
	thread.uninterruptible = stat.state == 'D';
	if (is_stopped(stop->what, stat.state))
		out->wait.state = PYBPF_STATE_STOPPED;
	else if (runs(stop->what, stat.state) || read_call(&thread, stop, out))
		out->wait = (struct pybpf_wait){.state = PYBPF_STATE_RUNNING};
	/* A stopped thread is in no system call; its state cannot change. */
	if (!out->stack_pointer && stop->what != DUMP_NOT_STOPPED) {
		procfs_read_call(pid, tid, &call);
		out->stack_pointer = call.stack_pointer;
	}
	return 0;
}

int dump_serve_state(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct question *q = question;

	(void)state;
	if (question_size != sizeof(*q))
		return -EINVAL;
	*size = sizeof(struct dump_state);
	return dump_look_at_state(q->pid, q->tid, &q->stop, answer);
}

int dump_read_state(pid_t pid, pid_t tid, const struct dump_stop *stop, struct dump_state *out)
{
	const struct question q = {.pid = pid, .tid = tid, .stop = *stop};
	size_t size;
	int err = helper_call(dump_serve_state, (struct helper_subject){.pid = pid}, &q, sizeof(q), out, sizeof(*out),
			      &size, PATIENCE_S);

	if (!err && (size != sizeof(*out) || out->wait.state >= PYBPF_NR_STATES))
		err = -EPROTO;
	return err;
}

/* Most sockets of one question. Unix sockets have peers.h. */
#define SOCKETS_MAX 1024

struct sockets_question {
	pid_t pid;
	uint32_t count;
	uint64_t inodes[SOCKETS_MAX];
};
_Static_assert(sizeof(struct sockets_question) <= HELPER_QUESTION_MAX, "a question holds all sockets");

int dump_serve_sockets(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct sockets_question *q = question;
	struct procfs_socket *sockets;
	struct pybpf_wait *found = answer;
	size_t count;
	int err;

	(void)state;
	if (question_size != sizeof(*q) || q->count > SOCKETS_MAX)
		return -EINVAL;
	*size = q->count * sizeof(struct pybpf_wait);
	memset(answer, 0, *size);
	err = procfs_read_sockets(q->pid, &sockets, &count);
	for (uint32_t i = 0; i < q->count; i++) {
		const struct procfs_socket *socket = procfs_find_socket(sockets, count, q->inodes[i]);

		if (socket)
			found[i] = socket->wait;
	}
	free(sockets);
	return err;
}

static int describe_some(pid_t pid, struct dump_state *const *states, uint32_t count)
{
	struct sockets_question *q = calloc(1, sizeof(*q));
	struct pybpf_wait *found = calloc(count, sizeof(*found));
	size_t size = 0;
	int err = -ENOMEM;

	if (q && found) {
		q->pid = pid;
		q->count = count;
		for (uint32_t i = 0; i < count; i++)
			q->inodes[i] = states[i]->socket;
		err = helper_call(dump_serve_sockets, (struct helper_subject){.pid = pid}, q, sizeof(*q), found,
				  count * sizeof(*found), &size, PATIENCE_S);
	}
	for (uint32_t i = 0; !err && size == count * sizeof(*found) && i < count; i++) {
		struct pybpf_wait *wait = &states[i]->wait;
		const struct pybpf_wait own = *wait;

		if (!found[i].file)
			continue;
		*wait = found[i];
		wait->state = own.state;
		wait->call = own.call;
	}
	free(q);
	free(found);
	return err;
}

int dump_describe_sockets(pid_t pid, const struct dump_peers *peers, struct dump_state *const *states, size_t count)
{
	uint64_t until_ns;
	int err = 0;

	for (size_t done = 0; done < count && !err; done += SOCKETS_MAX) {
		size_t some = count - done < SOCKETS_MAX ? count - done : SOCKETS_MAX;

		err = describe_some(pid, states + done, (uint32_t)some);
	}
	until_ns = clock_ns(CLOCK_MONOTONIC) + PEERS_NS;
	for (size_t i = 0; i < count && peers; i++) {
		if (!states[i]->wait.file)
			dump_peers_describe(peers, states[i]->socket, until_ns, &states[i]->wait);
	}
	return err;
}
