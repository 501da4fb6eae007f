// SPDX-License-Identifier: Apache-2.0
/* Tables of executable files: which hold a Python runtime, and where in them its variables are. */
#include "processes/files.h"

#include <stdlib.h>
#include <string.h>

#include "discovery/ask.h"
#include "base/intern.h"
#include "base/log.h"
#include "kernel/procs.h"
#include "pybpf.h"

/* A machine with many containers maps some thousand distinct libraries. */
#define MAX_OTHERS 8192

/* A file that holds a Python runtime; addresses as linked. */
struct runtime {
	uint64_t id; /* discovery_python.file_id */
	uint64_t map_start, map_offset;
	struct pybpf_file addresses;
	bool placed, validated;
};

struct processes_files {
	struct kernel *kernel;
	bool tasks;
	struct intern runtimes; /* struct runtime */
	struct intern others;   /* struct kernel_file_id: files that hold no Python runtime */
	uint32_t oldest_other;  /* index, once there are MAX_OTHERS */
};

struct processes_files *processes_files_new(struct kernel *k, bool tasks)
{
	struct processes_files *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->kernel = k;
	f->tasks = tasks;
	intern_init(&f->runtimes, sizeof(struct runtime), sizeof(uint64_t));
	intern_init(&f->others, sizeof(struct kernel_file_id), sizeof(struct kernel_file_id));
	return f;
}

void processes_files_free(struct processes_files *f)
{
	if (!f)
		return;
	intern_free(&f->runtimes);
	intern_free(&f->others);
	free(f);
}

static struct runtime *find_runtime(const struct processes_files *f, uint64_t id)
{
	uint32_t i = intern_find(&f->runtimes, &id);

	return i == INTERN_NONE ? NULL : intern_item(&f->runtimes, i);
}

static void tell_kernel(const struct processes_files *f, const struct pybpf_file_key *key,
			const struct pybpf_file *file)
{
	int err = kernel_put_file(f->kernel, key, file);

	if (err)
		log_debug("cannot tell the kernel of a program: %s", strerror(-err));
}

static uint64_t as_linked(uint64_t addr, const struct discovery_python *python)
{
	return addr ? addr - python->load_bias : 0;
}

bool processes_files_add_python(struct processes_files *f, const struct pybpf_file_key *key,
				const struct discovery_python *python, uint32_t layout)
{
	const struct runtime fresh = {.id = python->file_id};
	struct pybpf_file program;
	struct runtime *runtime;
	bool added;
	uint32_t i = intern_add(&f->runtimes, &fresh, &added);

	if (i == INTERN_NONE)
		return false;
	runtime = intern_item(&f->runtimes, i);
	if (!python->follows_file)
		return runtime->validated;
	runtime->placed = true;
	runtime->map_start = as_linked(python->map.start, python);
	runtime->map_offset = python->map.offset;
	runtime->addresses = (struct pybpf_file){
		.code_start = python->code_start,
		.interp_head = as_linked(python->interp_head_addr, python),
		.tstate_current = as_linked(python->tstate_current_addr, python),
		.code_type = as_linked(python->code_type_addr, python),
		.layout = layout,
		.thread_bias = python->thread_bias,
		.code_before = python->code_before,
		.code_size = python->code_size,
		.asyncio = python->asyncio,
	};
	program = runtime->addresses;
	program.kind = python->is_static ? PYBPF_PROGRAM_PYTHON : PYBPF_PROGRAM_LOADS;
	if (key)
		tell_kernel(f, key, &program);
	return runtime->validated;
}

void processes_files_add_other(struct processes_files *f, const struct pybpf_file_key *key)
{
	const struct pybpf_file program = {.kind = PYBPF_PROGRAM_OTHER};

	/* The file of a process whose event was lost is not known. */
	if (key->inode)
		tell_kernel(f, key, &program);
}

bool processes_files_is_other(const struct processes_files *f, const struct pybpf_file_key *key)
{
	struct pybpf_file program;

	return !kernel_get_file(f->kernel, key, &program) && program.kind == PYBPF_PROGRAM_OTHER;
}

void processes_files_trust_python(struct processes_files *f, const struct discovery_python *python)
{
	struct runtime *runtime = find_runtime(f, python->file_id);

	if (runtime)
		runtime->validated = true;
}

void processes_files_distrust_python(struct processes_files *f, const struct pybpf_file_key *key,
				     const struct discovery_python *python)
{
	struct runtime *runtime = find_runtime(f, python->file_id);

	if (runtime)
		runtime->placed = false;
	kernel_delete_file(f->kernel, key);
}

static bool is_other(const struct processes_files *f, const struct kernel_file_id *id)
{
	return intern_find(&f->others, id) != INTERN_NONE;
}

static void remember_other(struct processes_files *f, const struct kernel_file_id *id)
{
	bool added;

	if (f->others.count >= MAX_OTHERS)
		intern_remove_oldest(&f->others, &f->oldest_other);
	/* Without memory for it the file is looked at once more, when it is mapped the next time. */
	intern_add(&f->others, id, &added);
}

enum processes_mapped processes_files_classify_mapping(struct processes_files *f, const struct kernel_mapping *mapping,
						       struct pybpf_runtime *place)
{
	const struct runtime *runtime;
	enum discovery_mapped what;
	uint64_t id, bias;

	if (is_other(f, &mapping->file))
		return PROCESSES_MAPPED_NOTHING;
	if (discovery_ask_mapped_file(mapping->pid, mapping->start, mapping->start + mapping->size, &what, &id))
		return PROCESSES_MAPPED_UNKNOWN;
	if (what == DISCOVERY_MAPPED_ASYNCIO && f->tasks)
		return PROCESSES_MAPPED_ASYNCIO;
	if (what != DISCOVERY_MAPPED_PYTHON) {
		remember_other(f, &mapping->file);
		return PROCESSES_MAPPED_NOTHING;
	}
	runtime = find_runtime(f, id);
	if (!runtime || !runtime->placed || runtime->map_offset != mapping->offset)
		return PROCESSES_MAPPED_PYTHON;
	bias = mapping->start - runtime->map_start;
	*place = (struct pybpf_runtime){
		.interp_head = runtime->addresses.interp_head + bias,
		.tstate_current = runtime->addresses.tstate_current ? runtime->addresses.tstate_current + bias : 0,
		.code_type = runtime->addresses.code_type ? runtime->addresses.code_type + bias : 0,
		.layout = runtime->addresses.layout,
		.thread_bias = runtime->addresses.thread_bias,
		.code_before = runtime->addresses.code_before,
		.code_size = runtime->addresses.code_size,
		.asyncio = runtime->addresses.asyncio,
	};
	return PROCESSES_MAPPED_PLACED;
}
