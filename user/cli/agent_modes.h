// SPDX-License-Identifier: Apache-2.0
/* Modes of an agent. */
#ifndef CLI_AGENT_MODES_H
#define CLI_AGENT_MODES_H

#include "cli/options.h"

/* The words of --mode, an enum session_mode each, ended by an entry without one. */
#define CLI_AGENT_MODES 4
extern const struct cli_word cli_agent_modes[CLI_AGENT_MODES + 1];

#endif
