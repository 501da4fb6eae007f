// SPDX-License-Identifier: Apache-2.0
/* Names asyncio's tasks, and keeps chains of them by the kernel's number, which is a hash of their names. */
#include "symbols/tasks/tasks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/string.h"

/* The frames of a chain: its tasks, and a note on what awaits the last one. */
#define FRAMES (PYBPF_TASKS + 1)

struct chain {
	uint64_t task_id;
	uint32_t count;
	uint32_t frames[FRAMES]; /* from the task that runs on */
	uint32_t pad[2];
};

#define TASK "[task: "

static const char unknown[] = TASK "unknown]";

void tasks_init(struct tasks *t)
{
	intern_init(&t->chains, sizeof(struct chain), sizeof(uint64_t));
}

void tasks_free(struct tasks *t)
{
	intern_free(&t->chains);
}

static uint32_t add_frame(struct profile *profile, const char *text)
{
	return profile_add_frame(profile, PROFILE_NOTE, text, "", PROFILE_NO_LINE, PROFILE_NO_LINE);
}

static char *name_of_string(const struct pybpf_task_name *task)
{
	const struct pysym_string_shape shape = {
		.data_size = task->size < PYBPF_TASK_TEXT ? task->size : PYBPF_TASK_TEXT,
		.unit = task->form == PYBPF_TASK_UCS4   ? 4
			: task->form == PYBPF_TASK_UCS2 ? 2
							: 1,
		.latin1 = task->form == PYBPF_TASK_LATIN1,
	};
	char *text = pysym_string_decode(&shape, task->text, shape.data_size), *name = NULL;

	if (text && asprintf(&name, "%s%s", text, task->size > PYBPF_TASK_TEXT ? "..." : "") < 0)
		name = NULL;
	free(text);
	return name;
}

char *tasks_name(const struct pybpf_task_name *task)
{
	uint64_t number;
	char *name = NULL;

	switch (task->form) {
	case PYBPF_TASK_NUMBER:
		memcpy(&number, task->text, sizeof(number));
		return asprintf(&name, "Task-%" PRIu64, number) < 0 ? NULL : name;
	case PYBPF_TASK_ASCII:
	case PYBPF_TASK_LATIN1:
	case PYBPF_TASK_UCS2:
	case PYBPF_TASK_UCS4:
		return name_of_string(task);
	default:
		return NULL;
	}
}

static uint32_t add_task(struct profile *profile, const struct pybpf_task_name *task)
{
	char *name, *text = NULL;
	uint32_t frame = PROFILE_NONE;

	if (task->form == PYBPF_TASK_UNKNOWN || task->form > PYBPF_TASK_UCS4)
		return add_frame(profile, unknown);
	name = tasks_name(task);
	if (name && asprintf(&text, TASK "%s]", name) >= 0)
		frame = add_frame(profile, text);
	free(text);
	free(name);
	return frame;
}

int tasks_add(struct tasks *t, const struct pybpf_task_event *event, size_t size, struct profile *profile)
{
	struct chain chain = {0};
	bool fresh;

	if (size < offsetof(struct pybpf_task_event, tasks) || event->count > PYBPF_TASKS ||
	    size < offsetof(struct pybpf_task_event, tasks) + event->count * sizeof(event->tasks[0]))
		return -EBADMSG;
	chain.task_id = event->task_id;
	if (intern_find(&t->chains, &chain) != INTERN_NONE)
		return 0;
	for (uint32_t i = 0; i < event->count; i++)
		chain.frames[chain.count++] = add_task(profile, &event->tasks[i]);
	if (event->flags & PYBPF_TASKS_MORE)
		chain.frames[chain.count++] = add_frame(profile, "[more tasks]");
	else if (event->flags & PYBPF_TASKS_SEVERAL)
		chain.frames[chain.count++] = add_frame(profile, "[several tasks]");
	for (uint32_t i = 0; i < chain.count; i++) {
		if (chain.frames[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return intern_add(&t->chains, &chain, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

uint32_t tasks_push(const struct tasks *t, uint64_t task_id, struct profile *profile, uint32_t stack)
{
	const struct chain *chain;
	uint32_t i;

	if (!task_id)
		return stack;
	i = intern_find(&t->chains, &task_id);
	if (i == INTERN_NONE)
		return profile_add_stack(profile, stack, add_frame(profile, unknown));
	chain = intern_item(&t->chains, i);
	for (uint32_t j = chain->count; j-- > 0 && stack != PROFILE_NONE;)
		stack = profile_add_stack(profile, stack, chain->frames[j]);
	return stack;
}

bool tasks_is_task(const char *name)
{
	return strncmp(name, TASK, sizeof(TASK) - 1) == 0;
}
