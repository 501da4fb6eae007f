// SPDX-License-Identifier: Apache-2.0
/* The Python processes below another process, such as a shell or a supervisor that was named in their place. */
#ifndef DISCOVERY_BELOW_H
#define DISCOVERY_BELOW_H

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

#endif
