// SPDX-License-Identifier: Apache-2.0
/* Tells whose counts and times go into the profile now. */
#include "session/run/due.h"

#include "base/host.h"
#include "session/internal.h"

bool session_is_due(const struct session *s, const struct session_due *due, uint64_t proc_id)
{
	const struct processes_record *process;

	if (due->all || due->epoch)
		return true;
	process = processes_find_record(s->processes, proc_id);
	return process && process->ended && process->ended_at < due->before;
}

int session_find_end(const struct session *s, const struct session_due *due, uint64_t *end_ns)
{
	struct host_clock_offsets offsets = {0};
	const uint64_t end = due->all ? s->detach_ns : due->epoch ? s->epoch_end_ns : 0;
	int err = end ? host_read_clock_offsets(&offsets) : 0;

	*end_ns = end ? end - (uint64_t)offsets.monotonic : 0;
	return err;
}
