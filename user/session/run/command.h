// SPDX-License-Identifier: Apache-2.0
/* A program that pybpf starts, in the foreground, with its own stdin, stdout and terminal. */
#ifndef SESSION_COMMAND_H
#define SESSION_COMMAND_H

#include <signal.h>
#include <sys/types.h>

#include "rights/caller.h"

struct session_command {
	pid_t pid; /* 0: none */
	int go_fd, error_fd;
	int exit_code; /* as a shell would give it; valid once reaped */
	int reaped;
};

/* What pybpf was started with, and the command starts with. */
struct session_signals {
	sigset_t blocked;
	void (*pipe)(int), (*child)(int); /* SIG_DFL or SIG_IGN, for SIGPIPE and SIGCHLD */
};

/* Exit codes of shells (POSIX 2.8.2). */
#define SESSION_COMMAND_NOT_FOUND      127
#define SESSION_COMMAND_NOT_EXECUTABLE 126

/*
 * Blocks the signals that a run handles, has writes to closed pipes fail, and has the kernel keep the exit status of
 * children, which it drops while SIGCHLD is ignored. *before: how signals were before.
 */
void session_take_signals(struct session_signals *before);
/*
 * Forks a child that waits before it executes argv; before: the signals that the child restores. as: the user that
 * the child becomes, already looked up; NULL: the user that pybpf runs as. Returns 0 or negative errno.
 */
int session_command_start(struct session_command *command, char **argv, const struct session_signals *before,
			  const struct caller *as);
/*
 * Lets the child execute argv. Returns 0 or, after reporting a failed exec, the exit code that pybpf should end with.
 */
int session_command_release(struct session_command *command, const char *name);
/* Sends the signal to the command. */
void session_command_signal(const struct session_command *command, int signo);
/* Waits for the end of the command (block) or only checks for it. Returns 1 when the command has ended. */
int session_command_reap(struct session_command *command, int block);
/* Drops a child that was never released: the child then ends by itself. Accepts a zeroed struct. */
void session_command_drop(struct session_command *command);

#endif
