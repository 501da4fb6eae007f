// SPDX-License-Identifier: Apache-2.0
/* Finds the Pythons of one process in the files that it maps, and computes their addresses in this process. */
#include "discovery/discovery.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discovery/search.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/process_source.h"
#include "base/remote.h"
#include "cpython/facts.h"

/* Most distinct executable files of one process that are analysed. Large scientific programs map some 700. */
#define DISCOVERY_MAX_FILES 4096
/*
 * CPU time in nanoseconds that the files of one process may take. A stripped library takes some ten microseconds; a
 * file that was crafted to be slow takes a quarter of a second, despite the limits of each look-up. Waiting for a slow
 * disk does not count.
 */
#define DISCOVERY_MAX_CPU_NS 1000000000

static int collect_file(const struct procfs_map *map, void *arg)
{
	struct discovery_search *search = arg;
	struct discovery_mapped_file *file;

	search->has_heap |= !strcmp(map->path, "[heap]");
	if (map->inode && map->path[0] == '/' && map->inode != search->last_mapped) {
		search->nr_mapped++;
		search->last_mapped = map->inode;
	}
	/* A file with a runtime has code; data files, of which there can be thousands, are skipped. */
	if (!map->inode || !map->executable || map->path[0] != '/')
		return 0;
	for (size_t i = search->count; i-- > 0;) {
		const struct procfs_map *known = &search->files[i].map;

		if (known->inode == map->inode && known->dev_major == map->dev_major &&
		    known->dev_minor == map->dev_minor)
			return 0;
	}
	if (search->count == DISCOVERY_MAX_FILES)
		return 0;
	if (array_reserve(&search->files, &search->files_room, search->count + 1, sizeof(*search->files)))
		return -ENOMEM;
	file = &search->files[search->count];
	*file = (struct discovery_mapped_file){.map = *map};
	file->map.path = strdup(map->path);
	if (!file->map.path)
		return -ENOMEM;
	search->count++;
	/* Both texts come from d_path, so they are equal where stat's numbers may not be (overlayfs). */
	file->is_main = !strcmp(file->map.path, search->exe);
	if (file->is_main && search->count > 1) {
		struct discovery_mapped_file main = *file;

		memmove(search->files + 1, search->files, (search->count - 1) * sizeof(*file));
		search->files[0] = main;
	}
	return 0;
}

static void read_link(pid_t pid, const char *name, char *out, size_t size)
{
	const struct process_source *source = process_source_of(pid);
	char path[64];
	ssize_t n;

	if (source) {
		snprintf(out, size, "%s", !strcmp(name, "exe") ? source->exe : "");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	n = readlink(path, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	out[procfs_path_size(out)] = '\0';
}

/* Opens and analyses a mapped file, or finds it in the cache. Returns 0 or negative errno. */
static int look_at(struct discovery_cache *cache, pid_t pid, const struct procfs_map *map,
		   const struct discovery_file **out)
{
	struct discovery_file file = {0};
	struct elf_file *elf = NULL;
	int fd, err = 0;
	struct stat st;

	fd = procfs_open_map(pid, map);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st)) {
		err = -errno;
		goto done;
	}
	*out = discovery_cache_find(cache, &st);
	if (*out)
		goto done;
	err = elf_file_open(fd, &elf);
	if (!err)
		err = discovery_analyse(elf, &file);
	else if (err == -ENOTSUP)
		file.kind = DISCOVERY_FILE_FOREIGN;
	/* A file that is not ELF after all, or that ends too early, goes into the cache as one without a Python. */
	if (err == -ENOTSUP || err == -ENOEXEC || err == -ENOENT)
		err = 0;
	if (err)
		goto done;
	*out = discovery_cache_add(cache, &st, &file);
	if (!*out)
		err = -ENOMEM;
done:
	if (err)
		discovery_file_clear(&file);
	elf_file_free(elf);
	close(fd);
	return err;
}

/* Finds the load bias: an address in the process minus the address as linked. Returns false when there is none. */
static bool find_bias(const struct discovery_file *file, const struct procfs_map *map, uint64_t *out)
{
	/* arm64 kernels can have pages of 64 KiB; segments are mapped by whole pages. */
	uint64_t page_mask = ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1);

	for (size_t i = 0; i < file->code_count; i++) {
		const struct elf_segment *code = &file->code[i];
		uint64_t page_start = code->offset & page_mask;

		if (map->offset < page_start || map->offset - page_start >= code->offset - page_start + code->size)
			continue;
		*out = map->start - (code->vaddr + (map->offset - code->offset));
		/* A fixed file (ET_EXEC) at another address was not mapped by a loader. */
		return !file->fixed || *out == 0;
	}
	return false;
}

/* Reads the debug offsets (3.13 and later) from the process. The file's are the same, but it may not hold them. */
static enum discovery_result read_offsets(struct discovery_search *search, struct discovery_python *out)
{
	uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX];
	struct error error;
	int err = remote_read(search->pid, out->runtime_addr, bytes, sizeof(bytes));

	if (err == -ESRCH)
		return DISCOVERY_GONE;
	if (!err)
		err = layout_from_debug_offsets(bytes, sizeof(bytes), &out->build, &error);
	else
		error_set(&error, err, "memory at %#" PRIx64 ": %s", out->runtime_addr, strerror(-err));
	if (!err)
		return DISCOVERY_OK;
	error_set(search->error, -EINVAL, "process %d (%s) runs Python %s, whose debug offsets are not usable: %s",
		  search->pid, out->comm, out->version, error.text);
	return DISCOVERY_CONTRADICTED;
}

static uint64_t lowest_code(const struct discovery_file *file)
{
	uint64_t lowest = UINT64_MAX;

	for (size_t i = 0; i < file->code_count; i++)
		lowest = file->code[i].vaddr < lowest ? file->code[i].vaddr : lowest;
	return lowest;
}

/*
 * Where a Python's data is far from its code (a variable copied into the program), the code's place is unknown.
 */
static void place_code(struct discovery_python *out)
{
	uint64_t size = out->map.end - out->map.start, before = out->interp_head_addr - out->map.start;

	if (before > UINT32_MAX || size > UINT32_MAX)
		return;
	out->code_before = (uint32_t)before;
	out->code_size = (uint32_t)size;
}

static bool has_copies(const struct discovery_file *main)
{
	return main->copied_runtime || main->copied_tstate_current || main->copied_code_type;
}

static enum discovery_result fill(struct discovery_search *search, const struct discovery_file *file, uint64_t bias,
				  const struct discovery_mapped_file *mapped, struct discovery_python *out)
{
	const struct discovery_runtime *runtime = file->runtime;
	const struct discovery_version *version = &runtime->version;
	static const struct discovery_file no_other;
	const struct discovery_file *main = mapped->is_main ? &no_other : &search->main;
	enum discovery_result result = DISCOVERY_OK;

	out->version_major = version->major;
	out->version_minor = version->minor;
	out->version_micro = version->micro;
	snprintf(out->version, sizeof(out->version), "%s", version->text);
	snprintf(out->version_source, sizeof(out->version_source), "%s", version->source);
	snprintf(out->runtime_source, sizeof(out->runtime_source), "%s", runtime->source);
	snprintf(out->path, sizeof(out->path), "%s", discovery_inside_path(search, mapped->map.path));
	out->debug_build = version->debug_build;
	out->is_static = mapped->is_main;
	out->load_bias = bias;
	out->file_id = file->id;
	out->map = mapped->map;
	out->map.path = "";
	out->code_start = lowest_code(file);
	out->follows_file = !runtime->build_in_memory && !has_copies(main);
	out->build = runtime->build;
	out->runtime_addr = bias + runtime->runtime;
	out->tstate_current_addr = runtime->tstate_current ? bias + runtime->tstate_current : 0;
	out->code_type_addr = runtime->code_type ? bias + runtime->code_type : 0;
	if (main->copied_code_type)
		out->code_type_addr = search->main_bias + main->copied_code_type;
	if (main->copied_tstate_current && runtime->tstate_current) {
		out->tstate_current_addr = search->main_bias + main->copied_tstate_current;
		/* The GIL's holder may be there, too far away for the layout. */
		if (cpython_facts_of(version->major, version->minor)->build->holder_is_current)
			out->build.layout.gil = (struct pybpf_gil_variables){0};
	}
	if (main->copied_runtime && !runtime->tstate_current)
		out->runtime_addr = search->main_bias + main->copied_runtime;
	if (runtime->build_in_memory)
		result = read_offsets(search, out);
	if (result != DISCOVERY_OK)
		return result;
	out->interp_head_addr = out->runtime_addr;
	if (!runtime->tstate_current) {
		out->interp_head_addr += out->build.runtime_interp_head;
		layout_fit_release(&out->build, version->micro);
		/* Where the variable is unknown, the thread lists serve instead. */
		if (out->build.runtime_tstate_current != LAYOUT_NONE)
			out->tstate_current_addr = out->runtime_addr + out->build.runtime_tstate_current;
	}
	place_code(out);
	out->free_threaded = out->build.layout.free_threaded;
	out->build.layout.debug_build = out->debug_build;
	log_debug("process %d (%s): Python %s%s%s in %s, %s at %#" PRIx64 ", version from %s, layout from %s", out->pid,
		  out->comm, out->version, out->debug_build ? " debug" : "", out->free_threaded ? " free-threaded" : "",
		  out->path, out->runtime_source, out->runtime_addr, out->version_source, out->build.origin);
	return DISCOVERY_OK;
}

/* Adds a Python: copies what is known of the process, and fills in the rest. */
static enum discovery_result add_python(struct discovery_search *search, const struct discovery_file *file,
					uint64_t bias, const struct discovery_mapped_file *mapped)
{
	struct discovery_python *out = &search->out[search->found];
	enum discovery_result result;

	if (search->found >= search->room) {
		search->found++;
		return DISCOVERY_OK;
	}
	out->pid = search->pid;
	out->start_time = search->out->start_time;
	out->thread_bias = search->thread_bias;
	memmove(out->comm, search->out->comm, sizeof(out->comm));
	result = fill(search, file, bias, mapped, out);
	if (result == DISCOVERY_OK)
		search->found++;
	return result;
}

/* Returns whether the module _asyncio may be of this Python: those of some versions tell offsets. */
static bool may_have_asyncio(const struct discovery_python *python, const struct pybpf_asyncio *asyncio)
{
	const struct cpython_tasks *facts = cpython_facts_of(python->version_major, python->version_minor)->tasks;

	return facts->kind != CPYTHON_TASKS_NONE &&
	       (facts->kind == CPYTHON_TASKS_IN_LISTS) == (asyncio->running_task != 0);
}

/* Gives the offsets of the module _asyncio to the Python that it is of, if the process has only one that may be. */
static void place_asyncio(struct discovery_search *search)
{
	struct discovery_python *of = NULL;

	for (size_t i = 0; i < search->found && i < search->room; i++) {
		if (!may_have_asyncio(&search->out[i], &search->asyncio))
			continue;
		if (of)
			return;
		of = &search->out[i];
	}
	if (of)
		of->asyncio = search->asyncio;
}

/* The C library may have been met after the Python. */
static void place_thread_bias(const struct discovery_search *search)
{
	for (size_t i = 0; i < search->found && i < search->room; i++)
		search->out[i].thread_bias = search->thread_bias;
}

/* Keeps what a file says of the process, beside a Python. */
static void keep_facts(struct discovery_search *search, const struct discovery_file *file, const struct procfs_map *map)
{
	if (file->thread_bias)
		search->thread_bias = file->thread_bias;
	else if (file->asyncio.loaded)
		search->asyncio = file->asyncio;
	else if (file->kind == DISCOVERY_FILE_OTHER && !file->copied_runtime && !file->copied_tstate_current &&
		 !file->copied_code_type)
		discovery_memo_add(&search->known->memo, map);
}

/* Looks at a file. Returns DISCOVERY_OK if the search goes on. */
static enum discovery_result look_at_mapped(struct discovery_search *search, const struct discovery_mapped_file *mapped)
{
	const char *comm = search->out->comm;
	const struct discovery_file *file = NULL;
	enum discovery_result result;
	uint64_t bias = 0;
	bool mapped_well;
	int err = look_at(&search->known->cache, search->task, &mapped->map, &file);

	if (err || !file) {
		search->unreadable++;
		if (search->unreadable_error != -ENOMEM)
			search->unreadable_error = err;
		return DISCOVERY_OK;
	}
	mapped_well = find_bias(file, &mapped->map, &bias);
	if (mapped->is_main) {
		search->main = *file;
		search->main_bias = bias;
		search->foreign_main = file->kind == DISCOVERY_FILE_FOREIGN;
	}
	if (file->kind == DISCOVERY_FILE_REFUSED) {
		error_set(search->error, -ENOTSUP, "process %d (%s), %s: %s", search->pid, comm,
			  discovery_inside_path(search, mapped->map.path), file->refusal);
		search->refused = true;
	}
	keep_facts(search, file, &mapped->map);
	if (file->kind != DISCOVERY_FILE_PYTHON)
		return DISCOVERY_OK;
	if (!mapped_well) {
		/* Not mapped by a loader: either as data, or by a loader that is still at work. */
		log_debug("process %d (%s): %s holds a Python but is not mapped as its headers say", search->pid, comm,
			  mapped->map.path);
		return DISCOVERY_OK;
	}
	result = add_python(search, file, bias, mapped);
	search->contradicted |= result == DISCOVERY_CONTRADICTED;
	return result == DISCOVERY_CONTRADICTED ? DISCOVERY_OK : result;
}

/* The files took too long, before this one. A contradiction is the better reason, if there is one. */
static void refuse_slow_files(struct discovery_search *search, size_t i)
{
	if (!search->contradicted)
		error_set(search->error, -ENOTSUP,
			  "process %d (%s) maps files that take too long to read: after %zu of %zu, the last of which "
			  "was %s, pybpf looked no further",
			  search->pid, search->out->comm, i, search->count,
			  discovery_inside_path(search, search->files[i ? i - 1 : 0].map.path));
	search->refused = true;
}

static enum discovery_result search_files(struct discovery_search *search)
{
	enum discovery_result result;
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (size_t i = 0; i < search->count; i++) {
		if (discovery_memo_has(&search->known->memo, &search->files[i].map))
			continue;
		if (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start > DISCOVERY_MAX_CPU_NS) {
			refuse_slow_files(search, i);
			break;
		}
		result = look_at_mapped(search, &search->files[i]);
		if (result != DISCOVERY_OK)
			return result;
	}
	place_asyncio(search);
	place_thread_bias(search);
	if (search->contradicted)
		return DISCOVERY_CONTRADICTED;
	return search->found ? DISCOVERY_OK : discovery_tell_nothing(search, search->out->comm);
}

/*
 * Searches the process once. *retry: the thread that showed the mappings has ended meanwhile, and another thread may
 * show all of them.
 */
static enum discovery_result look_once(struct discovery_search *search, bool *retry)
{
	struct discovery_python *out = search->out;
	pid_t pid = search->pid;
	enum discovery_result result = DISCOVERY_GONE;
	struct procfs_stat stat;
	int err;

	memset(out, 0, search->room * sizeof(*out));
	out->pid = pid;
	error_clear(search->error);
	err = procfs_read_stat(pid, &stat);
	if (err)
		goto failed;
	out->start_time = stat.start_time;
	search->kernel_thread = stat.kernel_thread;
	snprintf(out->comm, sizeof(out->comm), "%s", stat.comm);
	search->task = procfs_task(pid, &stat);
	if (!search->task) {
		error_set(search->error, -ESRCH,
			  "process %d (%s) has ended and waits for its parent (%d) to collect it", pid, out->comm,
			  stat.ppid);
		result = DISCOVERY_ZOMBIE;
		goto done;
	}
	read_link(search->task, "exe", search->exe, sizeof(search->exe));
	read_link(search->task, "root", search->root, sizeof(search->root));
	err = procfs_each_map(search->task, collect_file, search);
	if (err)
		goto failed;
	result = search_files(search);
	/* When a process ends, its files become unreadable one by one, and its PID can be another's by now. */
	if (result != DISCOVERY_UNSUPPORTED && (procfs_read_stat(pid, &stat) || stat.start_time != out->start_time)) {
		err = -ESRCH;
		goto failed;
	}
	goto done;
failed:
	if (err == -ESRCH) {
		error_set(search->error, err, "there is no process %d (any more)", pid);
		result = DISCOVERY_GONE;
	} else {
		error_set(search->error, err, "cannot read the mappings of process %d%s%s%s in /proc: %s%s", pid,
			  out->comm[0] ? " (" : "", out->comm, out->comm[0] ? ")" : "", strerror(-err),
			  err == -EACCES || err == -EPERM ? host_explain_denial(false) : "");
		result = DISCOVERY_DENIED;
	}
done:
	*retry = search->task && (result != DISCOVERY_OK || search->unreadable) &&
		 procfs_task(pid, NULL) != search->task;
	for (size_t i = 0; i < search->count; i++)
		free((char *)search->files[i].map.path);
	free(search->files);
	return result;
}

struct discovery *discovery_new(void)
{
	struct discovery *discovery = malloc(sizeof(*discovery));

	if (!discovery)
		return NULL;
	discovery->containers = container_cache_new();
	if (!discovery->containers) {
		free(discovery);
		return NULL;
	}
	discovery_cache_init(&discovery->cache);
	discovery_memo_init(&discovery->memo);
	return discovery;
}

void discovery_free(struct discovery *discovery)
{
	if (!discovery)
		return;
	discovery_cache_free(&discovery->cache);
	discovery_memo_free(&discovery->memo);
	container_cache_free(discovery->containers);
	free(discovery);
}

void discovery_memo_begin(struct discovery *discovery)
{
	discovery->memo.on = true;
}

void discovery_memo_end(struct discovery *discovery)
{
	discovery_memo_free(&discovery->memo);
}

enum discovery_result discovery_runtimes(struct discovery *discovery, pid_t pid, struct discovery_python *out,
					 size_t room, size_t *count, struct error *error)
{
	enum discovery_result result = DISCOVERY_GONE;
	bool retry = true;

	for (int i = 0; i < 2 && retry; i++) {
		struct discovery_search search = {.known = discovery,
						  .pid = pid,
						  .out = out,
						  .room = room,
						  .error = error,
						  .thread_bias = DISCOVERY_HAS_THREAD_BIAS ? PYBPF_NO_THREAD_BIAS : 0};

		result = look_once(&search, &retry);
		*count = search.found;
	}
	return result;
}

int discovery_mapped_file(struct discovery *discovery, pid_t pid, uint64_t start, uint64_t end,
			  enum discovery_mapped *what, uint64_t *id)
{
	const struct procfs_map map = {.start = start, .end = end, .path = ""};
	const struct discovery_file *file = NULL;
	int err = look_at(&discovery->cache, pid, &map, &file);
	pid_t task;

	if (err) {
		task = procfs_task(pid, NULL);
		if (task && task != pid)
			err = look_at(&discovery->cache, task, &map, &file);
	}
	if (err || !file)
		return err ?: -ENOENT;
	*what = file->kind != DISCOVERY_FILE_OTHER ? DISCOVERY_MAPPED_PYTHON
		: file->asyncio.loaded             ? DISCOVERY_MAPPED_ASYNCIO
						   : DISCOVERY_MAPPED_NOTHING;
	*id = file->id;
	return 0;
}
