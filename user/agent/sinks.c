// SPDX-License-Identifier: Apache-2.0
/* The table of all sinks of the agent. */
#include "agent/sink.h"

const struct agent_sink *const agent_sinks[AGENT_SINKS] = {
	&agent_files_sink,
	&agent_push_sink,
	&agent_serve_sink,
};
