// SPDX-License-Identifier: Apache-2.0
/*
 * From an interpreter through sys.modules to _asyncio, which has the dict of the tasks that run by event loop, and the
 * class of tasks.
 */
#include "symbols/current_tasks.h"

#include <string.h>

#include "symbols/py_dict.h"

/* PyTypeObject, from the end of the object's header on (3.7 to 3.13). */
#define TYPE_NAME      8
#define TYPE_BASICSIZE 16

/*
 * TaskObj of Modules/_asynciomodule.c, from the end of the object's header on, by its size, which tells 3.10's before
 * and after FutureObj.fut_exception_tb. The struct is in no header: taken from the DWARF of 3.7.16, 3.8.18, 3.9.18,
 * 3.10.13, 3.11.7, 3.12.1 and 3.13.0.
 */
static const struct task_layout {
	uint8_t first, last; /* minor versions */
	uint8_t size, coro;
	uint8_t name; /* 0: there is none */
} task_layouts[] = {
	{7, 7, 120, 96, 0},      {8, 8, 128, 96, 104},    {9, 10, 168, 136, 144},
	{10, 10, 176, 144, 152}, {11, 12, 160, 120, 128}, {13, 13, 128, 104, 112},
};

/* Returns the layout of the class's instances, or NULL. */
static const struct task_layout *layout_of(const struct py_reader *r, uint64_t type)
{
	static const char task[] = "_asyncio.Task";
	uint64_t name, size, fields = type + py_header_size(r);
	char text[sizeof(task)];

	if (!py_read_u64(r, fields + TYPE_NAME, &name) ||
	    r->memory->read(r->memory->source, name, text, sizeof(text)) || memcmp(text, task, sizeof(task)) != 0 ||
	    !py_read_u64(r, fields + TYPE_BASICSIZE, &size))
		return NULL;
	for (size_t i = 0; i < sizeof(task_layouts) / sizeof(task_layouts[0]); i++) {
		const struct task_layout *of = &task_layouts[i];

		if (r->layout->minor >= of->first && r->layout->minor <= of->last &&
		    size == of->size + py_header_size(r))
			return of;
	}
	return NULL;
}

bool pysym_find_tasks(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp,
		      struct pysym_modules *seen, struct pybpf_asyncio *out)
{
	const struct py_reader r = {memory, layout};
	uint64_t modules, module, names, type, tasks;
	const struct task_layout *of;
	struct py_dict dict;
	uint8_t head = (uint8_t)py_header_size(&r);

	if (!layout->interp_modules || !py_read_u64(&r, interp + layout->interp_modules, &modules) ||
	    !py_open_dict(&r, modules, &dict) || (dict.entries == seen->entries && dict.count == seen->count))
		return false;
	*seen = (struct pysym_modules){.entries = dict.entries, .count = dict.count};
	if (!py_find_text(&r, &dict, "_asyncio", &module))
		return false;
	/* It may be in the middle of its import: look again, whether or not there are further modules. */
	*seen = (struct pysym_modules){0};
	/* A module's first field is its dict. */
	if (!py_read_u64(&r, module + head, &names) || !py_open_dict(&r, names, &dict) ||
	    !py_find_text(&r, &dict, "Task", &type) || !py_find_text(&r, &dict, "_current_tasks", &tasks) ||
	    !py_is_a(&r, tasks, PY_KIND_DICT))
		return false;
	of = layout_of(&r, type);
	if (!of)
		return false;
	out->current_tasks = tasks;
	out->task_coro = head + of->coro;
	out->task_name = of->name ? head + of->name : 0;
	return true;
}

size_t pysym_find_all_tasks(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp,
			    uint64_t sets[PYSYM_TASK_SETS])
{
	/* To 3.11; since 3.12. Tasks that are eager are in another set until they first wait. */
	static const char *const names[] = {"_all_tasks", "_scheduled_tasks", "_eager_tasks"};
	const struct py_reader r = {memory, layout};
	uint64_t modules, module, dict_at;
	struct py_dict dict;
	size_t count = 0;

	if (!layout->interp_modules || !py_read_u64(&r, interp + layout->interp_modules, &modules) ||
	    !py_open_dict(&r, modules, &dict) || !py_find_text(&r, &dict, "_asyncio", &module) ||
	    !py_read_u64(&r, module + py_header_size(&r), &dict_at) || !py_open_dict(&r, dict_at, &dict))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && count < PYSYM_TASK_SETS; i++)
		count += py_find_text(&r, &dict, names[i], &sets[count]);
	return count;
}

/*
 * From PyThreadState.thread_id to other fields, as in bpf/current_task.bpf.h: back to dict (3.7 to 3.12), and on to
 * _PyThreadStateImpl.asyncio_running_loop (3.13), which has two places.
 */
#define DICT_BEFORE_ID         24
#define RUNNING_LOOP_313       152
#define RUNNING_LOOP_313_LATER 160

/* 3.13: returns whether the object is an event loop, as far as it can be told: it has attributes of one. */
static bool is_loop(const struct py_reader *r, uint64_t object)
{
	struct py_dict attributes;
	uint64_t value;

	return py_open_attributes(r, object, &attributes) && py_find_text(r, &attributes, "_thread_id", &value);
}

uint64_t pysym_running_loop(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t tasks,
			    uint64_t tstate)
{
	const struct py_reader r = {memory, layout};
	uint64_t thread_id = tstate + layout->tstate_thread_id, names, loop = 0, later = 0;
	struct py_dict dict;

	if (layout->minor >= 13) {
		py_read_u64(&r, thread_id + RUNNING_LOOP_313, &loop);
		py_read_u64(&r, thread_id + RUNNING_LOOP_313_LATER, &later);
		if (pysym_current_task(memory, layout, tasks, loop) || is_loop(&r, loop))
			return loop;
		return pysym_current_task(memory, layout, tasks, later) || is_loop(&r, later) ? later : 0;
	}
	if (!py_read_u64(&r, thread_id - DICT_BEFORE_ID, &names) || !py_open_dict(&r, names, &dict) ||
	    !py_find_text(&r, &dict, "__asyncio_running_event_loop__", &loop))
		return 0;
	/* PyRunningLoopHolder.rl_loop */
	if (layout->minor <= 11 && !py_read_u64(&r, loop + py_header_size(&r), &loop))
		return 0;
	return loop;
}

uint64_t pysym_current_task(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t tasks,
			    uint64_t loop)
{
	const struct py_reader r = {memory, layout};
	struct py_dict dict;
	uint64_t task = 0;

	return py_open_dict(&r, tasks, &dict) && py_find_object(&r, &dict, loop, &task) ? task : 0;
}

/* Most interpreters of a list. */
#define MAX_INTERPRETERS 1024

uint64_t pysym_main_interpreter(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t head)
{
	const struct py_reader r = {memory, layout};
	uint64_t next = 0, interp = 0;

	if (!py_read_u64(&r, head, &next))
		return 0;
	for (int i = 0; next && i < MAX_INTERPRETERS; i++) {
		interp = next;
		if (!py_read_u64(&r, interp + layout->interp_next, &next))
			return 0;
	}
	return next ? 0 : interp;
}
