// SPDX-License-Identifier: Apache-2.0
#include "session/cpu_time.h"

#include "base/clock.h"
#include "helper/helper.h"

double session_used_s(void)
{
	return clock_s(CLOCK_PROCESS_CPUTIME_ID) + helper_cpu_s();
}
