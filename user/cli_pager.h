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

struct cli_pager {
	FILE *stream;        /* to write to: the pager's, or stdout */
	const char *command; /* NULL: none */
	pid_t pid;
};

/*
 * Starts one where it is wanted and stdout is a terminal; else, and where the command is empty or "cat", or none is
 * named and there is no less, stream is stdout.
 */
void cli_pager_start(struct cli_pager *pager, bool wanted);

/*
 * Ends the output and waits until the pager has been left. *err is 0 or a negative errno of what was written, and
 * becomes that of the output; leaving a pager early is no error. Returns true when no pager could be run: the output is
 * to be written once more, which then goes to stdout.
 */
bool cli_pager_finish(struct cli_pager *pager, int *err);

#endif
