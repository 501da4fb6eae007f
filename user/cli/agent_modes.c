// SPDX-License-Identifier: Apache-2.0
/* Modes of an agent. */
#include "cli/agent_modes.h"

#include "session/session.h"

const struct cli_word cli_agent_modes[CLI_AGENT_MODES + 1] = {
	{"cpu", SESSION_CPU}, {"wall", SESSION_WALL}, {"offcpu", SESSION_OFFCPU}, {"gil", SESSION_GIL}, {0},
};
