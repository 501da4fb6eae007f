// SPDX-License-Identifier: Apache-2.0
/* The options of agent. */
#ifndef CLI_AGENT_OPTIONS_H
#define CLI_AGENT_OPTIONS_H

#include <stdbool.h>

#include "agent/agent.h"
#include "cli/options.h"
#include "discovery/filter.h"
#include "profile/edit.h"
#include "session/session.h"

struct cli_agent_options {
	struct agent_options agent;
	struct session_options session;
	struct discovery_filter filter;
	struct discovery_service_rules services;
	struct profile_edit edit; /* own_paths */
	int verbose;
};

/* Fills in the defaults. */
void cli_agent_options_init(struct cli_agent_options *o);
/*
 * Parses the command line. Returns 0, or the exit code after one sentence on stderr. Sets *helped if --help was given
 * and has been printed.
 */
int cli_agent_parse(struct cli_agent_options *o, int argc, char **argv, bool *helped);
void cli_agent_options_free(struct cli_agent_options *o);

#endif
