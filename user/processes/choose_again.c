// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses processes once more that were left out. One costs the kernel a look-up, as one without Python does, and is
 * not heard of any more; but a container's name, from which its service may follow, can come after its first program.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/scan.h"
#include "processes/internal.h"

static void look_anew(struct processes *p, struct processes_record *process)
{
	process->unchosen = false;
	processes_start_look(p, process, false);
}

/* The copies that it has made while it was left out were left out, too, and the kernel has told of none of them. */
static void look_at_copies(struct processes *p, const struct processes_record *process)
{
	const uint32_t pid = (uint32_t)process->pid;
	uint32_t *below = NULL;
	size_t count = 0;

	if (scan_find_below(&pid, 1, &below, &count))
		log_warn("children of process %d (%.16s) that it has started before its service was known may be left "
			 "out: /proc cannot be read",
			 process->pid, process->comm);
	for (size_t i = 0; i < count && !p->error; i++) {
		struct processes_record *copy = processes_find_pid(p, (pid_t)below[i]);

		/* One that has a record was heard of, and is decided by itself. */
		if (copy && !copy->ended)
			continue;
		copy = processes_get_record(p, (pid_t)below[i]);
		if (copy && !copy->ended)
			look_anew(p, copy);
	}
	free(below);
}

void processes_choose_again(struct processes *p, struct processes_record *process)
{
	if (!process->unchosen || (process->service && !process->service_unread))
		return;
	free(process->service);
	process->service = NULL;
	if (!processes_is_chosen(p, process))
		return;
	log_info("process %d (%.16s) is of the service %s, which is sampled", process->pid, process->comm,
		 process->service);
	look_anew(p, process);
	look_at_copies(p, process);
}
