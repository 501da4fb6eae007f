// SPDX-License-Identifier: Apache-2.0
/* Tasks as bytes between a helper process and the one that asks. */
#include <string.h>

#include "symbols/tasks/task_read.h"

#define PACKED_HEAD offsetof(struct task_read, tasks)

size_t task_read_packed_size(const struct task_read *task)
{
	return PACKED_HEAD + task->nr_tasks * sizeof(*task->tasks) + task->nr_awaiters * sizeof(*task->awaiters) +
	       task->nr_frames * sizeof(*task->frames);
}

static char *put(char *at, const void *items, size_t size)
{
	memcpy(at, items, size);
	return at + size;
}

void task_read_pack(const struct task_read *task, void *out)
{
	char *at = put(out, task, PACKED_HEAD);

	at = put(at, task->tasks, task->nr_tasks * sizeof(*task->tasks));
	at = put(at, task->awaiters, task->nr_awaiters * sizeof(*task->awaiters));
	put(at, task->frames, task->nr_frames * sizeof(*task->frames));
}

static const char *take(const char *at, void *items, size_t size)
{
	memcpy(items, at, size);
	return at + size;
}

size_t task_read_unpack(const void *bytes, size_t size, struct task_read *out)
{
	const char *at = bytes;

	if (size < PACKED_HEAD)
		return 0;
	at = take(at, out, PACKED_HEAD);
	if (out->nr_tasks > PYBPF_TASKS || out->nr_awaiters > TASK_READ_AWAITERS || out->nr_frames > TASK_READ_FRAMES ||
	    out->awaits >= TASK_AWAITS_KINDS || size < task_read_packed_size(out))
		return 0;
	out->type[sizeof(out->type) - 1] = '\0';
	at = take(at, out->tasks, out->nr_tasks * sizeof(*out->tasks));
	at = take(at, out->awaiters, out->nr_awaiters * sizeof(*out->awaiters));
	take(at, out->frames, out->nr_frames * sizeof(*out->frames));
	return task_read_packed_size(out);
}
