// SPDX-License-Identifier: Apache-2.0
/* The lists of a snapshot: threads that run a loop, and the tasks that were found. */
#include <errno.h>

#include "base/array.h"
#include "symbols/tasks/task_reader.h"

bool task_add_loop(struct task_reader *r, uint64_t interp, uint64_t tstate, uint64_t loop)
{
	if (r->nr_loops == TASK_LOOPS)
		return false;
	r->loops[r->nr_loops++] = (struct task_loop){.tstate = tstate, .loop = loop, .interp = interp};
	return true;
}

int task_add_listed(struct task_reader *r, uint64_t interp, uint64_t task)
{
	struct task_listed listed = {.task = task, .interp = interp};
	uint64_t loop = 0;

	if (r->nr_listed == TASK_READ_TASKS)
		return -E2BIG;
	if (array_reserve(&r->listed, &r->listed_room, r->nr_listed + 1, sizeof(*r->listed)))
		return -ENOMEM;
	r->memory->read(r->memory->source, task + task_head_size(r) + PYBPF_FUTURE_LOOP, &loop, sizeof(loop));
	for (size_t i = 0; loop && i < r->nr_loops; i++) {
		if (r->loops[i].loop != loop)
			continue;
		listed.tstate = r->loops[i].tstate;
		listed.since = r->loops[i].since;
	}
	r->listed[r->nr_listed++] = listed;
	return 0;
}
