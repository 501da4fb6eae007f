// SPDX-License-Identifier: Apache-2.0
/*
 * The program that shows text longer than the terminal: $PYBPF_PAGER, $PAGER, or less. It runs as the user who called
 * sudo, without capabilities, without pybpf's descriptors, and with LESSSECURE.
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* For the help of commands that print through a pager. */
#define CLI_PAGER_NOTE                                                                                                 \
	"Text goes to a terminal through $PYBPF_PAGER, $PAGER, or `less -FRX`; an empty variable, or cat, means no "   \
	"pager. With sudo, the pager runs as the user who called it."

struct cli_pager {
	FILE *stream;        /* to write to: the pager's, or stdout */
	const char *command; /* NULL: none */
	pid_t pid;
};

/*
 * Starts the pager's process if a pager is wanted and stdout is a terminal; to be called while pybpf still has the
 * right to execute programs. The process executes the pager when the first text arrives. stream is stdout if no pager
 * is started: also if the command is empty or "cat", or if no variable names one and less is not installed.
 */
void cli_pager_prepare(struct cli_pager *pager, bool wanted);

/* Ignores the signals that are meant for the pager; to be called before writing to the stream. */
void cli_pager_start(const struct cli_pager *pager);

/*
 * Closes the output and waits until the user quits the pager. *err is 0 or the negative errno of the writing, and is
 * set to the result of the whole output; quitting the pager early is not an error. Returns true if the pager could not
 * be run: the caller then writes the output once more, to the stream, which is now stdout.
 */
bool cli_pager_finish(struct cli_pager *pager, int *err);

/* Ends a pager to which nothing was written. May be called at any time, and on a zeroed struct. */
void cli_pager_discard(struct cli_pager *pager);

#endif
