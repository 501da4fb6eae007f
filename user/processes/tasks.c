// SPDX-License-Identifier: Apache-2.0
/*
 * Where asyncio of Python 3.7 to 3.13 has its tasks: in a dict of the module _asyncio, which is there once the module
 * is imported.
 */
#include "base/log.h"
#include "base/remote.h"
#include "symbols/tasks/current_tasks.h"
#include "symbols/walk/walk_user.h"
#include "processes/internal.h"

/*
 * Seconds between searches: a quarter of the time since the module was mapped, so that a Python that has it inside and
 * never imports it costs little.
 */
#define SEARCH_SHARE   0.25
#define SEARCH_FIRST_S 0.01
#define SEARCH_LAST_S  10.0
/* Most interpreters of a Python, whose main one is the last in their list. */
#define MAX_INTERPRETERS 1024

/* Returns the main interpreter, or 0. */
static uint64_t find_interpreter(const struct processes_record *process, const struct pybpf_runtime *runtime,
				 const struct pybpf_layout *layout)
{
	uint64_t next = 0, interp = 0;

	if (remote_read(process->pid, runtime->interp_head, &next, sizeof(next)))
		return 0;
	for (int i = 0; next && i < MAX_INTERPRETERS; i++) {
		interp = next;
		if (remote_read(process->pid, interp + layout->interp_next, &next, sizeof(next)))
			return 0;
	}
	return next ? 0 : interp;
}

static bool find_tasks(const struct processes *p, struct processes_record *process, struct pybpf_runtime *runtime)
{
	const struct pybpf_layout *layout = kernel_get_layout(p->kernel, runtime->layout);
	uint64_t interp = find_interpreter(process, runtime, layout);
	struct walk_memory memory;

	walk_process_memory(&memory, &process->pid);
	return interp && pysym_find_tasks(&memory, layout, interp, &process->modules, &runtime->asyncio);
}

void processes_find_tasks(struct processes *p, struct processes_record *process, double now)
{
	bool found = false, missing = false;
	struct pybpf_proc entry;
	double wait;

	if (!p->options.tasks || processes_get_entry(p, process, &entry))
		return;
	for (uint32_t i = 0; i < entry.nr_runtimes; i++) {
		const struct pybpf_asyncio *asyncio = &entry.runtimes[i].asyncio;

		if (!asyncio->loaded || asyncio->running_task || asyncio->current_tasks)
			continue;
		if (find_tasks(p, process, &entry.runtimes[i]))
			found = true;
		else
			missing = true;
	}
	if (found) {
		log_info("process %d: found the tasks that its asyncio runs", process->pid);
		processes_put_entry(p, process, &entry);
	}
	if (!missing)
		return;
	if (process->tasks_since <= 0)
		process->tasks_since = now;
	wait = SEARCH_SHARE * (now - process->tasks_since);
	wait = wait < SEARCH_FIRST_S ? SEARCH_FIRST_S : wait > SEARCH_LAST_S ? SEARCH_LAST_S : wait;
	processes_schedule_look(p, process, now + wait);
}
