// SPDX-License-Identifier: Apache-2.0
/* The options of agent. */
#ifndef CLI_AGENT_OPTIONS_H
#define CLI_AGENT_OPTIONS_H

#include <stdbool.h>

#include "agent/agent.h"
#include "cli/agent_modes.h"
#include "cli/config.h"
#include "cli/options.h"
#include "discovery/filter.h"
#include "profile/edit.h"
#include "session/session.h"

#define CLI_AGENT_GROUPS 12

struct cli_agent_options {
	struct agent_options agent;
	struct session_options session;
	struct discovery_filter filter;
	struct discovery_service_rules services;
	struct discovery_service_choice chosen[AGENT_MODES_MAX]; /* of each of agent.modes: what is measured by it */
	bool modes_of_file;       /* the modes so far are the file's, which those of the command line replace */
	struct profile_edit edit; /* own_paths */
	int verbose;
	const char *config_path;   /* NULL: no file of options */
	struct cli_config *config; /* texts of options are its own; NULL likewise */
	bool check;                /* the options alone */
	int argc;                  /* the command line, whose options count more than the file's */
	char **argv;
	struct cli_option_group groups[CLI_AGENT_GROUPS];
};

/* Fills in the defaults. The struct stays where it is. */
void cli_agent_options_init(struct cli_agent_options *o);
/*
 * Parses the command line, and the file of --config. Returns 0, or the exit code after one sentence on stderr. Sets
 * *helped if --help was given and has been printed.
 */
int cli_agent_parse(struct cli_agent_options *o, int argc, char **argv, bool *helped);
/*
 * Reads the file of --config again, and fills *agent with what can change while the agent runs; says what cannot.
 * Returns 0, or an exit code after one sentence on stderr.
 */
int cli_agent_read_again(const struct cli_agent_options *o, struct agent_options *agent);
void cli_agent_options_free(struct cli_agent_options *o);

#endif
