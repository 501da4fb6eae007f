// SPDX-License-Identifier: Apache-2.0
/*
 * What may be named in place of a Python process: one that has Pythons below it, such as a shell or a supervisor, or a
 * thread.
 */
#ifndef DISCOVERY_BELOW_H
#define DISCOVERY_BELOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "discovery/filter.h"

/*
 * Writes the Pythons below the processes into text: "12 (python3), 13 (celery)", or "" if there are none. Those of
 * `chosen` are left out, and those that were not looked at within patience_s seconds.
 */
void discovery_name_below(const uint32_t *pids, size_t count, const struct discovery_numbers *chosen, double patience_s,
			  char *text, size_t size);

/* Reports why a process is not taken, which maps no Python, and the Pythons below it if there are any. */
void discovery_refuse_parent(enum log_level level, pid_t pid, const char *why);

/* Returns whether the PID is that of a thread other than a process's first one; reports then which process that is. */
bool discovery_refuse_thread(pid_t pid);

#endif
