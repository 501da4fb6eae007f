// SPDX-License-Identifier: Apache-2.0
/* The loop of a run: waits for events, signals, timeouts and the end of the targets. */
#ifndef SESSION_RUN_H
#define SESSION_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "session/session.h"
#include "session/run/command.h"

enum session_end {
	SESSION_END_DURATION,
	SESSION_END_SIGNAL,
	SESSION_END_TARGET, /* the targets are gone */
	SESSION_END_ERROR,
};

/* Most sessions of a run: what an agent measures at the same time. */
#define SESSION_RUN_MAX 3

struct session_run {
	struct session *sessions[SESSION_RUN_MAX]; /* beside each other, of the same processes; up to the first NULL */
	struct session_command *command;           /* NULL unless pybpf started the target */
	double duration_s; /* of sampling, which begins with the session; 0: until a signal or the targets' end */
	bool progress;     /* show it on stderr */
	/* Returns whether there is still something to sample; polled. NULL: the run lasts as long as a target lives. */
	bool (*goes_on)(void *arg);
	void *goes_on_arg;
	/* Called each interval_s; a negative errno ends the run as an error, after the callee has reported it. NULL:
	 * none. */
	int (*on_interval)(void *arg);
	double interval_s;
	/*
	 * Called when input_fd polls readable, and at SIGWINCH, which must be blocked, too; a positive result ends the
	 * run as a signal does. NULL: no input.
	 */
	int (*on_input)(void *arg);
	int input_fd;
	/* Called at SIGHUP, which else ends the run. */
	void (*on_hangup)(void *arg);
	void *watcher; /* the argument of all three */
};

/* Runs until one of enum session_end, which it returns. signals_of_run() must be blocked, also before a command is
 * started. */
enum session_end session_run(struct session_run *run);

/* Waits for a command that outlives the run's duration; signals are still passed on. */
void session_run_command(struct session_command *command);

#endif
