// SPDX-License-Identifier: Apache-2.0
/* asyncio's tasks from the ring buffer, as frames of the profile. */
#ifndef SYMBOLS_TASKS_H
#define SYMBOLS_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "profile/profile.h"
#include "pybpf.h"

struct tasks {
	struct intern chains;
};

void tasks_init(struct tasks *t);
void tasks_free(struct tasks *t);

/* Takes a record of size bytes. Returns 0, -EBADMSG or -ENOMEM. */
int tasks_add(struct tasks *t, const struct pybpf_task_event *event, size_t size, struct profile *profile);

/*
 * Puts the tasks of that number on top of a stack: the one that runs last, those that await it before. Returns the
 * stack, the same if the number is 0, or PROFILE_NONE without memory.
 */
uint32_t tasks_push(const struct tasks *t, uint64_t task_id, struct profile *profile, uint32_t stack);

/* Returns the task's name in a new string (caller frees), or NULL if it is not known or memory is exhausted. */
char *tasks_name(const struct pybpf_task_name *task);

/* Returns whether the name of a note's frame is that of a task. */
bool tasks_is_task(const char *name);

#endif
