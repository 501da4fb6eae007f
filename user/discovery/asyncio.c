// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the module _asyncio in its file, or in the program that has it inside, and reads where it has its fields, which
 * that file tells from 3.14 on.
 */
#include <errno.h>

#include "cpython/facts.h"
#include "cpython/structs.h"
#include "discovery/internal.h"

static bool is_pointer_inside(uint64_t offset, uint64_t size)
{
	return offset && offset % sizeof(uint64_t) == 0 && offset < size;
}

void discovery_read_asyncio(struct elf_file *elf, struct pybpf_asyncio *out)
{
	struct cpython_asyncio_offsets table;
	struct elf_section section;
	struct elf_symbol init;

	*out = (struct pybpf_asyncio){.loaded = !elf_file_symbol(elf, "PyInit__asyncio", &init)};
	if (elf_file_section(elf, ".AsyncioDebug", &section) || section.size < sizeof(table) ||
	    elf_file_read(elf, section.addr, &table, sizeof(table)) != sizeof(table))
		return;
	/* A TaskObj has 168 bytes in 3.14, and 192 in its free-threaded build; offsets in it are kept in a byte. */
	if (table.task.size > UINT8_MAX || table.thread.size > UINT16_MAX ||
	    !is_pointer_inside(table.task.name, table.task.size) ||
	    !is_pointer_inside(table.task.coro, table.task.size) ||
	    !is_pointer_inside(table.task.awaited_by, table.task.size) ||
	    table.task.awaited_by_is_set >= table.task.size ||
	    !is_pointer_inside(table.thread.running_task, table.thread.size))
		return;
	*out = (struct pybpf_asyncio){
		.running_task = (uint16_t)table.thread.running_task,
		.task_name = (uint8_t)table.task.name,
		.task_coro = (uint8_t)table.task.coro,
		.awaited_by = (uint8_t)table.task.awaited_by,
		.awaited_by_is_set = (uint8_t)table.task.awaited_by_is_set,
		.loaded = true,
	};
	if (!is_pointer_inside(table.task.node, table.task.size) || table.interpreter.size > UINT32_MAX ||
	    !is_pointer_inside(table.interpreter.tasks_head, table.interpreter.size) ||
	    !is_pointer_inside(table.thread.tasks_head, table.thread.size) ||
	    !is_pointer_inside(table.thread.running_loop, table.thread.size))
		return;
	out->task_node = (uint8_t)table.task.node;
	out->thread_tasks = (uint16_t)table.thread.tasks_head;
	out->running_loop = (uint16_t)table.thread.running_loop;
	out->interp_tasks = (uint32_t)table.interpreter.tasks_head;
}

int discovery_check_tasks(const struct discovery_python *python, struct error *error)
{
	if (cpython_facts_of(python->version_major, python->version_minor)->tasks->kind != CPYTHON_TASKS_NONE)
		return 0;
	if (error)
		error_set(error, -ENOTSUP,
			  "process %d (%s) runs Python %s, and asyncio's tasks can be named from Python 3.7 on: leave "
			  "out --async",
			  python->pid, python->comm, python->version);
	return -ENOTSUP;
}
