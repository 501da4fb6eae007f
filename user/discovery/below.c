// SPDX-License-Identifier: Apache-2.0
/* Looks for Pythons below processes and for the processes of threads, and names them. */
#include "discovery/below.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/scan.h"
#include "discovery/ask.h"
#include "helper/helper.h"

/* Processes that a line names. */
#define NAMED_MAX 8
/* Longest search for Pythons below a process: its user may have made thousands, and files that are slow to read. */
#define LOOK_BELOW_S 1.0

void discovery_name_below(const uint32_t *pids, size_t count, const struct discovery_numbers *chosen, double patience_s,
			  char *text, size_t size)
{
	struct discovery_python *python = calloc(1, sizeof(*python));
	size_t below_count = 0, found = 0, used = 0, pythons;
	double until = clock_s(CLOCK_MONOTONIC) + patience_s;
	uint32_t *below = NULL;
	struct error error;

	text[0] = '\0';
	if (!python || scan_find_below(pids, count, &below, &below_count))
		below_count = 0;
	for (size_t i = 0; i < below_count && !helper_is_interrupted() && clock_s(CLOCK_MONOTONIC) < until; i++) {
		if (chosen && discovery_numbers_have(chosen, below[i]))
			continue;
		if (discovery_wait_runtimes((pid_t)below[i], true, 0, python, 1, &pythons, &error) != DISCOVERY_OK)
			continue;
		if (found++ < NAMED_MAX && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%u (%.15s)", used ? ", " : "", below[i],
						 python->comm);
	}
	if (found > NAMED_MAX && used < size)
		snprintf(text + used, size - used, " and %zu more", found - NAMED_MAX);
	free(below);
	free(python);
}

void discovery_refuse_parent(enum log_level level, pid_t pid, const char *why)
{
	const uint32_t top = (uint32_t)pid;
	char below[512];

	discovery_name_below(&top, 1, NULL, LOOK_BELOW_S, below, sizeof(below));
	if (below[0])
		log_printf(level,
			   "%s; below it Python runs in %s: give -p %d --children for all that it has started and "
			   "starts, or the PIDs of those",
			   why, below, pid);
	else
		log_printf(level, "%s", why);
}

bool discovery_refuse_thread(pid_t pid)
{
	pid_t process;

	if (procfs_thread_group(pid, &process) || process == pid)
		return false;
	log_error("%d is a thread of process %d: give -p %d", pid, process, process);
	return true;
}
