// SPDX-License-Identifier: Apache-2.0
/* Finds the process that started another one. */
#include "base/procfs.h"

pid_t procfs_read_parent(pid_t pid, pid_t inside, struct procfs_stat *stat, struct procfs_status *status)
{
	pid_t parent = stat->ppid;

	if (parent <= 1 || inside == 1 || procfs_read_status(parent, status) || procfs_read_stat(parent, stat) ||
	    (inside != pid && status->inside == parent))
		return 0;
	return parent;
}
