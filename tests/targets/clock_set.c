// SPDX-License-Identifier: Apache-2.0
/*
 * To be preloaded: the time of day as if the clock had been set by CLOCK_SET_S seconds. What the kernel has noted, in
 * files, is from before that.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's names are reserved.
int clock_gettime(clockid_t clock, struct timespec *time)
{
	int failed = (int)syscall(SYS_clock_gettime, clock, time);
	const char *by = getenv("CLOCK_SET_S");

	if (!failed && clock == CLOCK_REALTIME && by)
		time->tv_sec += strtol(by, NULL, 10);
	return failed;
}
