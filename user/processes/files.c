// SPDX-License-Identifier: Apache-2.0
/* Tables of executable files: which hold a Python runtime, and where in them its variables are. */
#include "processes/files.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "discovery/ask.h"
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
	UT_hash_handle hh;
};

/* A file that holds no Python runtime. */
struct other {
	struct kernel_file_id id;
	UT_hash_handle hh;
};

struct processes_files {
	struct kernel *kernel;
	struct runtime *runtimes;
	struct other *others;
};

struct processes_files *processes_files_new(struct kernel *k)
{
	struct processes_files *f = calloc(1, sizeof(*f));

	if (f)
		f->kernel = k;
	return f;
}

static void remove_other(struct processes_files *f, struct other *other)
{
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_DEL(f->others, other);
	free(other);
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
}

void processes_files_free(struct processes_files *f)
{
	struct runtime *runtime, *next;
	struct other *other, *next_other;

	if (!f)
		return;
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_ITER (hh, f->runtimes, runtime, next) {
		HASH_DEL(f->runtimes, runtime);
		free(runtime);
	}
	HASH_ITER (hh, f->others, other, next_other)
		remove_other(f, other);
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
	free(f);
}

static struct runtime *find_runtime(const struct processes_files *f, uint64_t id)
{
	struct runtime *runtime;

	HASH_FIND(hh, f->runtimes, &id, sizeof(id), runtime);
	return runtime;
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
	struct runtime *runtime = find_runtime(f, python->file_id);
	struct pybpf_file program;

	if (!runtime) {
		runtime = calloc(1, sizeof(*runtime));
		if (!runtime)
			return false;
		runtime->id = python->file_id;
		HASH_ADD(hh, f->runtimes, id, sizeof(runtime->id), runtime);
		if (!runtime->hh.tbl) {
			free(runtime);
			return false;
		}
	}
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
	};
	program = runtime->addresses;
	program.kind = python->is_static ? PYBPF_FILE_PYTHON : PYBPF_FILE_LOADS;
	if (key)
		tell_kernel(f, key, &program);
	return runtime->validated;
}

void processes_files_add_other(struct processes_files *f, const struct pybpf_file_key *key)
{
	const struct pybpf_file program = {.kind = PYBPF_FILE_OTHER};

	tell_kernel(f, key, &program);
}

bool processes_files_is_other(const struct processes_files *f, const struct pybpf_file_key *key)
{
	struct pybpf_file program;

	return !kernel_get_file(f->kernel, key, &program) && program.kind == PYBPF_FILE_OTHER;
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
	struct other *other;

	HASH_FIND(hh, f->others, id, sizeof(*id), other);
	return other != NULL;
}

static void remember_other(struct processes_files *f, const struct kernel_file_id *id)
{
	struct other *other = calloc(1, sizeof(*other));

	if (!other)
		return;
	/* uthash keeps the order of insertion: the head is the oldest. */
	if (HASH_COUNT(f->others) >= MAX_OTHERS)
		remove_other(f, f->others);
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): as above. */
	other->id = *id;
	HASH_ADD(hh, f->others, id, sizeof(other->id), other);
	if (!other->hh.tbl)
		free(other);
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
}

enum processes_mapped processes_files_classify_mapping(struct processes_files *f, const struct kernel_mapping *mapping,
						       struct pybpf_runtime *place)
{
	const struct runtime *runtime;
	bool python;
	uint64_t id, bias;

	if (is_other(f, &mapping->file))
		return PROCESSES_MAPPED_NOTHING;
	if (discovery_ask_mapped_file(mapping->pid, mapping->start, mapping->start + mapping->size, &python, &id))
		return PROCESSES_MAPPED_UNKNOWN;
	if (!python) {
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
	};
	return PROCESSES_MAPPED_PLACED;
}
