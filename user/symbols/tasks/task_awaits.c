// SPDX-License-Identifier: Apache-2.0
/* Names what a suspended task awaits. */
#include "symbols/tasks/task_awaits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/tasks/tasks.h"

/* The module of asyncio's own types, which their names begin with. */
#define MODULE "_asyncio."

char *task_awaits_name(const struct task_read *task)
{
	const char *type = strncmp(task->type, MODULE, strlen(MODULE)) != 0 ? task->type : task->type + strlen(MODULE);
	char *awaited = NULL, *name = NULL;
	int n;

	switch (task->awaits) {
	case TASK_AWAITS_TASK:
		awaited = tasks_name(&task->awaited);
		n = asprintf(&name, "task %s", awaited ?: "unknown");
		free(awaited);
		return n < 0 ? NULL : name;
	case TASK_AWAITS_OBJECT:
		return strdup(*type ? type : "unknown");
	case TASK_AWAITS_INSIDE:
		return asprintf(&name, "inside %s", *type ? type : "unknown") < 0 ? NULL : name;
	case TASK_AWAITS_FIRST_STEP:
		return strdup("first step");
	case TASK_AWAITS_YIELD:
		return strdup("yield");
	case TASK_AWAITS_RUNS:
		return strdup("nothing");
	default:
		return strdup("more functions");
	}
}
