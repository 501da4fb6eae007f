// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

const char *agent_mode_name(enum session_mode mode)
{
	static const char *const names[] = {
		[SESSION_CPU] = "cpu", [SESSION_WALL] = "wall", [SESSION_OFFCPU] = "offcpu", [SESSION_GIL] = "gil"};

	return names[mode];
}
