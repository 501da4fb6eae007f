// SPDX-License-Identifier: Apache-2.0
/* Forks the command, has it wait, become the user and execute, and reports why that failed. */
#include "session/run/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"
#include "rights/login_path.h"
#include "rights/priority.h"
#include "rights/rights.h"

/* Why the child ended without executing the command. */
struct refusal {
	int err;
	bool as_user; /* it could not become the user */
};

/* The child's descriptor for reporting a failure: the first after stdin, stdout and stderr. */
#define ERROR_FD 3

static void refuse(int error_fd, int err, bool as_user)
{
	const struct refusal refusal = {err, as_user};

	if (write(error_fd, &refusal, sizeof(refusal)) < 0)
		_exit(SESSION_COMMAND_NOT_EXECUTABLE);
	_exit(err == ENOENT ? SESSION_COMMAND_NOT_FOUND : SESSION_COMMAND_NOT_EXECUTABLE);
}

/*
 * Becomes the user as a login does. The bounding set stays, and no_new_privs is not set: both would break sudo and ping
 * in the command, which work in the user's own shell. Like sudo, it does not pass on descriptors that the
 * caller's shell has left open to another user. Returns the descriptor for reporting a failure, or negative errno.
 */
static int become(const struct caller *as, int error_fd)
{
	char path[PATH_MAX];
	int err = caller_become(as);

	err = err ?: rights_empty();
	login_path(path, sizeof(path));
	if (!err && setenv("PATH", path, 1))
		err = -errno;
	if (!err && error_fd != ERROR_FD && dup3(error_fd, ERROR_FD, O_CLOEXEC) < 0)
		err = -errno;
	if (!err && close_range(ERROR_FD + 1, ~0u, 0))
		err = -errno;
	return err ?: ERROR_FD;
}

static void run_child(int go_fd, int error_fd, char **argv, const struct session_signals *before,
		      const struct caller *as)
{
	char go;

	if (read(go_fd, &go, 1) != 1)
		_exit(SESSION_COMMAND_NOT_EXECUTABLE);
	if (as) {
		int fd = become(as, error_fd);

		if (fd < 0)
			refuse(error_fd, -fd, true);
		error_fd = fd;
	}
	priority_restore();
	signal(SIGPIPE, before->pipe);
	signal(SIGCHLD, before->child);
	sigprocmask(SIG_SETMASK, &before->blocked, NULL);
	execvp(argv[0], argv);
	refuse(error_fd, errno, false);
}

static void close_both(int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

void session_take_signals(struct session_signals *before)
{
	sigset_t signals;

	before->pipe = signal(SIGPIPE, SIG_IGN);
	before->child = signal(SIGCHLD, SIG_DFL);
	signals_of_run(&signals);
	sigprocmask(SIG_BLOCK, &signals, &before->blocked);
}

int session_command_start(struct session_command *command, char **argv, const struct session_signals *before,
			  const struct caller *as)
{
	int go[2], error[2], err;
	pid_t pid;

	memset(command, 0, sizeof(*command));
	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(error, O_CLOEXEC)) {
		err = -errno;
		close_both(go);
		return err;
	}
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close_both(go);
		close_both(error);
		return err;
	}
	if (pid == 0) {
		close(go[1]);
		run_child(go[0], error[1], argv, before, as);
	}
	close(go[0]);
	close(error[1]);
	command->pid = pid;
	command->go_fd = go[1];
	command->error_fd = error[0];
	return 0;
}

int session_command_release(struct session_command *command, const char *name)
{
	struct refusal refusal = {0};
	ssize_t n = write(command->go_fd, "", 1);

	close(command->go_fd);
	/* The pipe closes on exec: end of file means that the exec succeeded. */
	if (n == 1)
		n = read(command->error_fd, &refusal, sizeof(refusal));
	close(command->error_fd);
	command->go_fd = command->error_fd = -1;
	if (n == 0)
		return 0;
	session_command_reap(command, 1);
	log_error("cannot run %s%s: %s", name, refusal.as_user ? " as the user that --as names" : "",
		  strerror(refusal.err ? refusal.err : EIO));
	return refusal.err == ENOENT ? SESSION_COMMAND_NOT_FOUND : SESSION_COMMAND_NOT_EXECUTABLE;
}

void session_command_signal(const struct session_command *command, int signo)
{
	if (command->pid && !command->reaped)
		kill(command->pid, signo);
}

int session_command_reap(struct session_command *command, int block)
{
	int status;
	pid_t pid;

	if (command->reaped)
		return 1;
	do {
		pid = waitpid(command->pid, &status, block ? 0 : WNOHANG);
	} while (pid < 0 && errno == EINTR);
	if (pid != command->pid)
		return 0;
	command->reaped = 1;
	command->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return 1;
}

void session_command_drop(struct session_command *command)
{
	if (!command->pid || command->reaped || command->go_fd < 0)
		return;
	close(command->go_fd);
	close(command->error_fd);
	session_command_reap(command, 1);
}
