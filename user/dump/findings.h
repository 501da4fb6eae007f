// SPDX-License-Identifier: Apache-2.0
/* What a snapshot of a process shows at a glance: deadlocks, and who has what other threads wait for. */
#ifndef DUMP_FINDINGS_H
#define DUMP_FINDINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "dump/dump.h"

struct json;

/*
 * Sets dump_thread.held_up of the threads that wait for what a known one has. stopped: the threads cannot have moved
 * since they were read; else one that waits for a lock is looked at once more, and is left out if it has run since. To
 * be called after dump_find_deadlocks().
 */
void dump_find_held_up(struct dump_process *process, bool stopped);

/* Prints a sentence for each finding: deadlocks first, then the threads that most others wait for. */
void dump_print_findings(const struct dump_process *process, FILE *out);
/* Writes them all as the array "findings". */
void dump_write_findings(const struct dump_process *process, struct json *json);

#endif
