// SPDX-License-Identifier: Apache-2.0
/*
 * From an interpreter through sys.modules to _asyncio, which has the dict of the tasks that run by event loop, and the
 * class of tasks.
 */
#include "symbols/tasks/current_tasks.h"

#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/py_dict.h"

/* Returns the form of the class's instances, or NULL. */
static const struct cpython_task *form_of(const struct py_reader *r, uint64_t type)
{
	static const char task[] = "_asyncio.Task";
	uint64_t name, size, fields = type + py_header_size(r);
	char text[sizeof(task)];

	if (!py_read_u64(r, fields + PYBPF_TYPE_NAME, &name) ||
	    r->memory->read(r->memory->source, name, text, sizeof(text)) || memcmp(text, task, sizeof(task)) != 0 ||
	    !py_read_u64(r, fields + PYBPF_TYPE_BASICSIZE, &size))
		return NULL;
	for (size_t i = 0; i < CPYTHON_TASK_FORMS; i++) {
		const struct cpython_task *form = &cpython_facts(r->layout)->tasks->forms[i];

		if (form->size && size == form->size + py_header_size(r))
			return form;
	}
	return NULL;
}

bool pysym_find_tasks(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp,
		      struct pysym_modules *seen, struct pybpf_asyncio *out)
{
	const struct py_reader r = {memory, layout};
	uint64_t modules, module, names, type, tasks;
	const struct cpython_task *form;
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
	form = form_of(&r, type);
	if (!form)
		return false;
	out->current_tasks = tasks;
	out->task_coro = head + form->coro;
	out->task_name = form->name ? head + form->name : 0;
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

/* Returns whether the object is an event loop, as far as can be known: it has attributes of one. */
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
	uint64_t names, loop = 0, later = 0;
	struct py_dict dict;

	if (!layout->tstate_dict) {
		py_read_u64(&r, tstate + layout->tstate_loop[0], &loop);
		py_read_u64(&r, tstate + layout->tstate_loop[1], &later);
		if (pysym_current_task(memory, layout, tasks, loop) || is_loop(&r, loop))
			return loop;
		return pysym_current_task(memory, layout, tasks, later) || is_loop(&r, later) ? later : 0;
	}
	if (!py_read_u64(&r, tstate + layout->tstate_dict, &names) || !py_open_dict(&r, names, &dict) ||
	    !py_find_text(&r, &dict, "__asyncio_running_event_loop__", &loop))
		return 0;
	/* PyRunningLoopHolder.rl_loop */
	if (layout->has_loop_holder && !py_read_u64(&r, loop + py_header_size(&r), &loop))
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
