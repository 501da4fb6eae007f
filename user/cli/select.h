// SPDX-License-Identifier: Apache-2.0
/* The options that say which processes are wanted: those of record and ps alike. */
#ifndef CLI_SELECT_H
#define CLI_SELECT_H

#include <stdbool.h>

#include "cli/options.h"
#include "discovery/filter.h"

/* To be taken into a struct discovery_filter: which processes, and which of those. */
extern const struct cli_option cli_select_options[], cli_select_among_options[];

/*
 * Looks for contradictions; command says whether a program is to be started. Where there are only filters they are
 * those of all processes. Returns 0, or CLI_USAGE after one sentence on stderr.
 */
int cli_select_check(struct discovery_filter *filter, bool command);

#endif
