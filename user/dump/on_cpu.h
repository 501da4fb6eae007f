// SPDX-License-Identifier: Apache-2.0
/* Tells which of the threads that are ready to run have a CPU. */
#ifndef DUMP_ON_CPU_H
#define DUMP_ON_CPU_H

#include "dump/dump.h"

/*
 * Watches the running threads of a process that goes on for a tick of the scheduler, 1 to 10 ms: one that ran meanwhile
 * is on a CPU, one that was ready all the time and did not run waits for one. Others stay DUMP_CPU_UNKNOWN.
 */
void dump_tell_on_cpu(pid_t pid, struct dump_process *process);

#endif
