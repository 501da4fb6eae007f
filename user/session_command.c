// SPDX-License-Identifier: Apache-2.0
#include "session_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

static void run_child(int go_fd, int error_fd, char **argv, const sigset_t *mask)
{
	char go;
	int err;

	if (read(go_fd, &go, 1) != 1)
		_exit(SESSION_COMMAND_NOT_EXECUTABLE);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	err = errno;
	if (write(error_fd, &err, sizeof(err)) < 0)
		_exit(SESSION_COMMAND_NOT_EXECUTABLE);
	_exit(err == ENOENT ? SESSION_COMMAND_NOT_FOUND : SESSION_COMMAND_NOT_EXECUTABLE);
}

static void close_both(int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

int session_command_start(struct session_command *command, char **argv, const sigset_t *mask)
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
		run_child(go[0], error[1], argv, mask);
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
	int err = 0;
	ssize_t n = write(command->go_fd, "", 1);

	close(command->go_fd);
	/* The pipe closes on exec: nothing to read means that it went well. */
	if (n == 1)
		n = read(command->error_fd, &err, sizeof(err));
	close(command->error_fd);
	command->go_fd = command->error_fd = -1;
	if (n == 0)
		return 0;
	session_command_reap(command, 1);
	log_error("cannot run %s: %s", name, strerror(err ? err : EIO));
	return err == ENOENT ? SESSION_COMMAND_NOT_FOUND : SESSION_COMMAND_NOT_EXECUTABLE;
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
