// SPDX-License-Identifier: Apache-2.0
/* The options of record and ps that select processes. */
#ifndef CLI_SELECT_H
#define CLI_SELECT_H

#include <stdbool.h>

#include "cli/options.h"
#include "discovery/filter.h"

/* Options that select processes, and options that restrict the selection. Their target is a struct discovery_filter. */
extern const struct cli_option cli_select_options[], cli_select_among_options[];

/*
 * Has options take any name of a user from now on, without looking for it: after the start pybpf has no right to ask
 * daemons, which may be all that know it.
 */
void cli_select_trust_users(void);

/*
 * Checks the options for contradictions. command: the program to start; NULL: none. If only restrictions are given,
 * selects all processes. Returns 0, or CLI_USAGE after one sentence on stderr.
 */
int cli_select_check(struct discovery_filter *filter, const char *command);

#endif
