// SPDX-License-Identifier: Apache-2.0
/*
 * A program that shows what is longer than a terminal: $PYBPF_PAGER, $PAGER, or less. It runs as the user who called
 * sudo, without capabilities, without descriptors of ours, and with LESSSECURE.
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* For the help of commands whose text goes through one. */
#define CLI_PAGER_NOTE                                                                                                 \
	"Text goes to a terminal through $PYBPF_PAGER, $PAGER, or `less -FRX`; an empty variable, or cat, means no "   \
	"pager. With sudo, the pager runs as the user who called it."

struct cli_pager {
	FILE *stream;        /* to write to: the pager's, or stdout */
	const char *command; /* NULL: none */
	pid_t pid;
};

/*
 * Makes one ready where it is wanted and stdout is a terminal, while pybpf still has the right to execute programs; it
 * is executed when the first text comes. Else, and where the command is empty or "cat", or none is named and there is
 * no less, stream is stdout.
 */
void cli_pager_prepare(struct cli_pager *pager, bool wanted);

/* To be called before writing to the stream. */
void cli_pager_start(const struct cli_pager *pager);

/*
 * Ends the output and waits until the pager has been left. *err is 0 or a negative errno of what was written, and
 * becomes that of the output; leaving a pager early is no error. Returns true when no pager could be run: the output is
 * to be written once more, to the stream, which is stdout then.
 */
bool cli_pager_finish(struct cli_pager *pager, int *err);

/* Ends one into which nothing was written. May be called at any time, and on a zeroed struct. */
void cli_pager_discard(struct cli_pager *pager);

#endif
