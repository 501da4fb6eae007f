// SPDX-License-Identifier: Apache-2.0
/* Threads that wait for each other in a circle. */
#ifndef DUMP_DEADLOCK_H
#define DUMP_DEADLOCK_H

#include <stdbool.h>

#include "dump/dump.h"

/*
 * Finds circles of threads each of which waits for a lock or the GIL that the next one has, or for the end of that, and
 * numbers them in dump_thread.circle, from 1 on. stopped: the threads cannot have moved since they were read; else each
 * is looked at once more, and a circle with one that has run since is not a deadlock. To be called when all threads
 * have been read, and the index of them made. Returns 0 or -ENOMEM.
 */
int dump_find_deadlocks(struct dump_process *process, bool stopped);

/* Returns whether the thread has slept since it was read. */
bool dump_sleeps_still(const struct dump_process *process, const struct dump_thread *thread);

#endif
