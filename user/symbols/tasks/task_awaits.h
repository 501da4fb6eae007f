// SPDX-License-Identifier: Apache-2.0
/* What a suspended task awaits, in words. */
#ifndef SYMBOLS_TASK_AWAITS_H
#define SYMBOLS_TASK_AWAITS_H

#include "symbols/tasks/task_read.h"

/* Returns what the task's last function awaits, such as "task w1" or "Future" (caller frees), or NULL without memory.
 */
char *task_awaits_name(const struct task_read *task);

#endif
