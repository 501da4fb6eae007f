// SPDX-License-Identifier: Apache-2.0
/* Reads asyncio's tasks of a process in a helper process, which reads its memory and may be killed. */
#ifndef DISCOVERY_ASK_TASKS_H
#define DISCOVERY_ASK_TASKS_H

#include <sys/types.h>

#include "helper/helper.h"
#include "symbols/tasks/task_read.h"

/*
 * Calls visit with each suspended task of the process (with whole_tree each task), until it returns non-zero.
 * patience_s: longest wait for an answer, of which there may be 64, but none is asked for when pybpf and its helpers
 * have taken cpu_s seconds of CPU time for the tasks. Adds to *counts. Returns 0, the value of visit, -ETIMEDOUT when
 * there was no answer in time, -ENOBUFS when the helper's memory is full, or another negative errno.
 */
int discovery_ask_tasks(pid_t pid, const struct task_read_place *place, double patience_s, double cpu_s,
			int (*visit)(const struct task_read *task, void *arg), void *arg,
			struct task_read_counts *counts);

/* How helpers answer: a row of the table in cli/services.c. */
helper_service discovery_serve_tasks;

#endif
