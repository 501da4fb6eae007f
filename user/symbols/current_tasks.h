// SPDX-License-Identifier: Apache-2.0
/* Finds the dict of the asyncio tasks that run, in a process with Python 3.7 to 3.13. */
#ifndef SYMBOLS_CURRENT_TASKS_H
#define SYMBOLS_CURRENT_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk_user.h"

/* sys.modules as it was when it did not have asyncio. */
struct pysym_modules {
	uint64_t entries;
	uint32_t count;
};

/*
 * Finds _asyncio._current_tasks of an interpreter, and where its tasks have their fields. Returns false if the module
 * is not imported (yet), cannot be read, or has tasks of an unknown size. *seen: what an earlier call left there, or
 * zeroes: as long as no module is imported, nothing is searched anew.
 */
bool pysym_find_tasks(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp,
		      struct pysym_modules *seen, struct pybpf_asyncio *out);

#endif
