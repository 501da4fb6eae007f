// SPDX-License-Identifier: Apache-2.0
#include "session/wanted.h"

#include "base/scan.h"
#include "discovery/filter.h"
#include "session/internal.h"

static void note_wanted(struct processes_record *process, void *arg)
{
	const struct discovery_filter *filter = arg;
	struct scan_process now;

	if (process->wanted || process->ended || process->state != PROCESSES_PYTHON)
		return;
	process->wanted = !scan_read_process(process->pid, &now) && now.start_time == process->start &&
			  discovery_filter_matches(filter, &now, NULL);
}

void session_note_wanted(struct session *s)
{
	if (s->options.filter)
		processes_visit_all(s->processes, note_wanted, (void *)s->options.filter);
}
