// SPDX-License-Identifier: Apache-2.0
/* Which threads wait for work: those of pools and servers that have nothing to do. */
#ifndef DUMP_IDLE_H
#define DUMP_IDLE_H

#include "dump/dump.h"

/* Sets `is_idle` of the threads, whose stacks are known. Returns 0 or -ENOMEM. */
int dump_find_idle(struct dump_process *process);

#endif
