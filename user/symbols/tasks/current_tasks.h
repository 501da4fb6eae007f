// SPDX-License-Identifier: Apache-2.0
/* Finds the dict of the asyncio tasks that run, in a process with Python 3.7 to 3.13. */
#ifndef SYMBOLS_CURRENT_TASKS_H
#define SYMBOLS_CURRENT_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf.h"
#include "symbols/walk/walk_user.h"

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

/* Most sets of tasks that the module has. */
#define PYSYM_TASK_SETS 2
/* Finds the sets of all tasks of the module, weak ones and others. Returns their number, 0 if it is not imported. */
size_t pysym_find_all_tasks(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp,
			    uint64_t sets[PYSYM_TASK_SETS]);

/* Returns the event loop that the thread runs, or 0. tasks: _current_tasks, by which it is checked in 3.13. */
uint64_t pysym_running_loop(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t tasks,
			    uint64_t tstate);
/* Returns the task that the event loop runs, or 0. */
uint64_t pysym_current_task(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t tasks,
			    uint64_t loop);

/* Returns the main interpreter, which is the last one of the list that begins at *head; or 0. */
uint64_t pysym_main_interpreter(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t head);

#endif
