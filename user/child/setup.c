// SPDX-License-Identifier: Apache-2.0
/* What a process of pybpf's own does before it works. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child/child.h"
#include "rights/rights.h"

void child_block_signals(void)
{
	/* SIGSYS: a system call that the filter refused, which is reported. */
	static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&blocked, faults[i]);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	/* Whoever started pybpf may have it ignored, and then waitpid() tells nothing. */
	signal(SIGCHLD, SIG_DFL);
}

/* A container may have no /dev/null: reads and writes of a descriptor that is only a path fail. */
static int replace_streams(int last_stream)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (none < 0)
		none = open("/", O_PATH | O_CLOEXEC);
	for (int i = STDIN_FILENO; i <= last_stream; i++) {
		if (dup2(none, i) < 0)
			return -errno;
	}
	return 0;
}

int child_let_go(int last_stream, int *kept, size_t count)
{
	int err = replace_streams(last_stream);

	err = err ?: rights_keep_descriptors(kept, count);
	return err ?: chdir("/") ? -errno : 0;
}

void child_limit(int what, uint64_t value)
{
	const struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

	setrlimit(what, &limit);
}

bool child_say_begun(int socket, const struct error *error)
{
	return send(socket, error, sizeof(*error), MSG_NOSIGNAL) == sizeof(*error) && !error->code;
}

void child_tie(pid_t parent)
{
	/* The parent may have ended before prctl() took effect. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(0);
}
