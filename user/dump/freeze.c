// SPDX-License-Identifier: Apache-2.0
/* Stops all threads of a process by ptrace(2), and tells which of them slept. */
#include "dump/freeze.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "dump/woken.h"

/* Longest wait for threads to stop: all but uninterruptible ones take less than a millisecond on an idle machine. */
#define PATIENCE_NS 1000000000ull
#define PAUSE_NS    20000

struct dump_frozen {
	pid_t tid;
	enum dump_stopped stopped;
	int signal; /* that was to be delivered when it stopped, or 0 */
	bool gone;
	struct procfs_call call; /* on arm64: in which it slept, before it was stopped */
};

static struct dump_frozen *frozen_at(const struct dump_freeze *f, uint32_t i)
{
	return intern_item(&f->threads, i);
}

static bool read_registers(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec io = {.iov_base = regs, .iov_len = sizeof(*regs)};

	return !ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io);
}

/*
 * Arm64 forgets the system call before it stops a thread, so that /proc does not tell it any more (do_signal(),
 * arch/arm64/kernel/signal.c): it is noted before.
 */
#if defined(__aarch64__)
static void note_call(struct dump_frozen *thread, pid_t pid)
{
	if (procfs_read_call(pid, thread->tid, &thread->call))
		thread->call = (struct procfs_call){.number = -1};
}

static bool is_noted(const struct dump_frozen *thread, const struct user_regs_struct *regs)
{
	return thread->call.number >= 0 && thread->call.stack_pointer == regs->sp;
}
#else
static void note_call(struct dump_frozen *thread, pid_t pid)
{
	(void)thread;
	(void)pid;
}

static bool is_noted(const struct dump_frozen *thread, const struct user_regs_struct *regs)
{
	(void)thread;
	(void)regs;
	return true;
}
#endif

/* Returns whether a stopped thread was woken from the sleep of a system call to stop. */
static bool slept(const struct dump_frozen *thread)
{
	struct user_regs_struct regs;

	return read_registers(thread->tid, &regs) && is_noted(thread, &regs) && dump_was_woken(thread->tid, &regs);
}

static int seize(pid_t tid, void *arg)
{
	struct dump_freeze *f = arg;
	struct dump_frozen frozen = {.tid = tid};
	struct procfs_stat stat;
	bool fresh;

	if (intern_find(&f->threads, &tid) != INTERN_NONE)
		return 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		int err = errno;

		/* A thread that has ended cannot be traced. */
		if (err == ESRCH || procfs_read_task_stat(f->pid, tid, &stat) || strchr("ZXx", stat.state))
			return 0;
		return -err;
	}
	note_call(&frozen, f->pid);
	/* Not known, it goes on, and the kernel lets go of it when pybpf ends. */
	if (intern_add(&f->threads, &frozen, &fresh) == INTERN_NONE)
		return -ENOMEM;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL); /* fails if it has ended, which waitpid() tells */
	return 0;
}

static void note_stop(struct dump_frozen *thread, int status)
{
	bool by_event = status >> 16 == PTRACE_EVENT_STOP;

	if (!WIFSTOPPED(status)) {
		thread->gone = true;
	} else if (by_event && WSTOPSIG(status) != SIGTRAP) {
		thread->stopped = DUMP_STOPPED_BY_SIGNAL; /* by SIGSTOP and its like */
	} else {
		thread->stopped = slept(thread) ? DUMP_STOPPED_ASLEEP : DUMP_STOPPED_RUNNING;
		thread->signal = by_event ? 0 : WSTOPSIG(status);
	}
}

/* Waits until all threads stand, or the time is over. */
static void wait_for_stops(struct dump_freeze *f, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	size_t waiting;

	do {
		waiting = 0;
		for (uint32_t i = 0; i < f->threads.count; i++) {
			struct dump_frozen *thread = frozen_at(f, i);
			int status;
			pid_t found;

			if (thread->gone || thread->stopped != DUMP_NOT_STOPPED)
				continue;
			found = waitpid(thread->tid, &status, __WALL | WNOHANG);
			if (found == thread->tid)
				note_stop(thread, status);
			else if (found < 0 && errno != EINTR)
				thread->gone = true;
			else
				waiting++;
		}
		if (waiting)
			nanosleep(&pause, NULL);
	} while (waiting && clock_ns(CLOCK_MONOTONIC) < until_ns);
}

static int refuse(const struct dump_freeze *f, int err, struct error *error)
{
	struct procfs_status status;

	if (err == -EPERM && !procfs_read_status(f->pid, &status) && status.tracer)
		return error_set(
			error, err,
			"cannot stop process %d for --freeze: process %d traces it already (a debugger?); leave "
			"out --freeze, or end that",
			f->pid, status.tracer);
	return error_set(error, err, "cannot stop process %d for --freeze: %s; leave out --freeze", f->pid,
			 strerror(-err));
}

int dump_freeze(pid_t pid, struct dump_freeze *f, struct error *error)
{
	uint32_t known;
	int err;

	*f = (struct dump_freeze){.pid = pid, .began_ns = clock_ns(CLOCK_MONOTONIC)};
	intern_init(&f->threads, sizeof(struct dump_frozen), sizeof(pid_t));
	/* A thread that has not stopped yet may begin another one. */
	do {
		known = f->threads.count;
		err = procfs_each_task(pid, seize, f);
		if (!err)
			wait_for_stops(f, f->began_ns + PATIENCE_NS);
	} while (!err && f->threads.count > known && clock_ns(CLOCK_MONOTONIC) < f->began_ns + PATIENCE_NS);
	if (!err)
		return 0;
	dump_thaw(f);
	return refuse(f, err, error);
}

int dump_freeze_thread(pid_t pid, pid_t tid, uint64_t patience_ns, struct dump_freeze *f)
{
	int err;

	*f = (struct dump_freeze){.pid = pid, .began_ns = clock_ns(CLOCK_MONOTONIC)};
	intern_init(&f->threads, sizeof(struct dump_frozen), sizeof(pid_t));
	err = seize(tid, f);
	if (!err)
		wait_for_stops(f, f->began_ns + patience_ns);
	if (!err && dump_stop_of(f, tid).what == DUMP_NOT_STOPPED)
		err = !f->threads.count || frozen_at(f, 0)->gone ? -ESRCH : -EBUSY;
	if (err)
		dump_thaw(f);
	return err;
}

struct dump_stop dump_stop_of(const struct dump_freeze *f, pid_t tid)
{
	uint32_t i = intern_find(&f->threads, &tid);
	struct dump_stop stop = {.what = i == INTERN_NONE ? DUMP_NOT_STOPPED : frozen_at(f, i)->stopped};

	if (stop.what == DUMP_STOPPED_ASLEEP)
		stop.call = frozen_at(f, i)->call;
	return stop;
}

bool dump_registers_of(const struct dump_freeze *f, pid_t tid, struct unwind_registers *out)
{
	struct user_regs_struct regs;

	if (dump_stop_of(f, tid).what == DUMP_NOT_STOPPED || !read_registers(tid, &regs))
		return false;
	*out = unwind_registers_from(&regs);
	return true;
}

static void let_go(struct dump_freeze *f)
{
	for (uint32_t i = 0; i < f->threads.count; i++) {
		struct dump_frozen *thread = frozen_at(f, i);

		if (thread->gone || thread->stopped == DUMP_NOT_STOPPED)
			continue;
		ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal);
		thread->gone = true;
	}
}

uint64_t dump_thaw(struct dump_freeze *f)
{
	uint64_t ns = clock_ns(CLOCK_MONOTONIC) - f->began_ns;

	let_go(f);
	/* Only one that is stopped can be let go: the kernel lets go what is left when pybpf ends. */
	wait_for_stops(f, clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS);
	let_go(f);
	intern_free(&f->threads);
	*f = (struct dump_freeze){.pid = f->pid};
	return ns;
}
