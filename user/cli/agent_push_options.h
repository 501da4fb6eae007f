// SPDX-License-Identifier: Apache-2.0
/* The options of agent that say where profiles are sent. */
#ifndef CLI_AGENT_PUSH_OPTIONS_H
#define CLI_AGENT_PUSH_OPTIONS_H

#include <stdbool.h>

#include "agent/agent.h"
#include "cli/options.h"

/* Their target is a struct agent_push_options. */
extern const struct cli_option cli_agent_push_options[];

/* Returns whether profiles are sent anywhere. */
bool cli_agent_has_receiver(const struct agent_push_options *options);
/* Checks the options together. Returns 0, or CLI_USAGE after one sentence on stderr. */
int cli_agent_push_check(const struct agent_push_options *options);
/* Reads the files that they name, as the start does. Returns 0, or CLI_FAILED after one sentence on stderr. */
int cli_agent_push_check_files(const struct agent_push_options *options);
void cli_agent_push_free(struct agent_push_options *options);

#endif
