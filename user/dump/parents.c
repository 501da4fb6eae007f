// SPDX-License-Identifier: Apache-2.0
/* Reads the chain of processes above one. */
#include "dump/parents.h"

#include <stdio.h>

#include "base/procfs.h"

void dump_parents_read(pid_t pid, pid_t inside, struct dump_parents *out)
{
	struct procfs_stat stat;
	struct procfs_status status;

	out->count = 0;
	if (procfs_read_stat(pid, &stat))
		return;
	while (out->count < DUMP_PARENTS_MAX) {
		struct dump_parent *parent = &out->items[out->count];

		pid = procfs_read_parent(pid, inside, &stat, &status);
		if (!pid)
			return;
		inside = status.inside;
		parent->pid = pid;
		parent->inside = inside;
		snprintf(parent->comm, sizeof(parent->comm), "%.15s", stat.comm);
		out->count++;
	}
}
