// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a core file in place of a process. The kernel leaves out of it what a mapped file has unchanged, so that is
 * read from the file: a path in a core is that of another machine or another time, or was made up, so only ELF files
 * are read, and only those whose pages are those that the core has of them.
 */
#include "dump/core_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/procfs.h"
#include "base/remote.h"
#include "dump/woken.h"
#include "helper/helper.h"

/* Bytes of each mapping that are compared with its file. */
#define COMPARED 4096
/* Most segments of code of a file: linkers make one or two. */
#define CODE_SEGMENTS 8

#define NOT_OPEN INT_MIN
#define NO_FILE  SIZE_MAX

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && !memcmp(magic, ELFMAG, SELFMAG);
}

/*
 * Returns whether the file begins as the core has it, if it has that: the headers, and usually the build ID, which the
 * process does not change.
 */
static bool is_same(const struct dump_core *core, const struct core_map *map, int fd)
{
	char ours[COMPARED], theirs[COMPARED];
	size_t size = map->kept < COMPARED ? map->kept : COMPARED, done;
	const struct core_map *absent;
	ssize_t n;

	if (map->offset || map->writable || !size)
		return true;
	n = pread(fd, theirs, size, 0);
	return n > 0 && !core_file_read(&core->file, map->start, ours, (size_t)n, &absent, &done) &&
	       !memcmp(ours, theirs, (size_t)n);
}

static int check_file(const struct dump_core *core, const char *path, int fd)
{
	if (!is_elf(fd))
		return -ENOEXEC;
	for (size_t i = 0; i < core->file.nr_maps; i++) {
		if (!strcmp(core->file.maps[i].path, path) && !is_same(core, &core->file.maps[i], fd))
			return -ESTALE;
	}
	return 0;
}

/* Opens the file that had this path. Returns a descriptor or negative errno. */
static int open_path(const struct dump_core *core, const char *path)
{
	char name[PATH_MAX];
	struct stat st;
	int root, fd, err;
	bool given;

	if (path[0] != '/' || procfs_path_size(path) >= sizeof(name))
		return -ENOENT;
	snprintf(name, sizeof(name), "%.*s", (int)procfs_path_size(path), path);
	given = core->executable && !strcmp(name, core->exe);
	root = open(core->sysroot && !given ? core->sysroot : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = procfs_open_below(root, given ? core->executable : name, &st, &(struct timespec){0});
	close(root);
	err = fd < 0 ? fd : check_file(core, path, fd);
	if (err && fd >= 0)
		close(fd);
	return err ?: fd;
}

int dump_core_file(struct dump_core *core, const struct core_map *map)
{
	size_t first = core->firsts[map - core->file.maps], *place = &core->opened[core->next];

	if (core->fds[first] != NOT_OPEN)
		return core->fds[first];
	core->fds[first] = open_path(core, map->path);
	if (core->fds[first] < 0)
		return core->fds[first];
	if (*place != NO_FILE) {
		close(core->fds[*place]);
		core->fds[*place] = NOT_OPEN;
	}
	*place = first;
	core->next = (core->next + 1) % FILES_OPEN;
	return core->fds[first];
}

/* Reads what the core was never to hold. Returns the number of bytes, at least 1, or negative errno. */
static ssize_t read_mapped(struct dump_core *core, const struct core_map *map, uint64_t addr, void *buf, size_t size)
{
	int fd = dump_core_file(core, map);
	ssize_t n;

	if (fd < 0)
		return -EFAULT;
	if (size > map->end - addr)
		size = map->end - addr;
	n = pread(fd, buf, size, (off_t)(map->offset + (addr - map->start)));
	return n > 0 ? n : -EFAULT;
}

static int read_core(void *of, uint64_t addr, void *buf, size_t size)
{
	struct dump_core *core = of;
	char *to = buf;

	while (size) {
		const struct core_map *map;
		size_t done;
		ssize_t n;
		int err = core_file_read(&core->file, addr, to, size, &map, &done);

		if (err != -ENODATA)
			return err;
		n = read_mapped(core, map, addr + done, to + done, size - done);
		if (n < 0)
			return (int)n;
		done += (size_t)n;
		addr += done;
		to += done;
		size -= done;
	}
	return 0;
}

static bool is_code(struct dump_core *core, const struct core_map *map)
{
	struct elf_segment code[CODE_SEGMENTS];
	struct elf_file *elf = NULL;
	bool found = false;
	size_t count;
	int fd;

	if (!map->listed)
		return map->executable;
	fd = dump_core_file(core, map);
	if (fd < 0 || elf_file_open(fd, &elf))
		return false;
	count = elf_file_code_segments(elf, code, CODE_SEGMENTS);
	for (size_t i = 0; i < count && !found; i++)
		found = map->offset < code[i].offset + code[i].size &&
			map->offset + (map->end - map->start) > code[i].offset;
	elf_file_free(elf);
	return found;
}

/* A mapping as /proc/PID/maps would tell it; files have numbers in place of inodes. path has room for PATH_MAX bytes.
 */
static void tell_map(struct dump_core *core, size_t index, char *path, struct procfs_map *out)
{
	const struct core_map *map = &core->file.maps[index];

	snprintf(path, PATH_MAX, "%.*s", (int)procfs_path_size(map->path), map->path);
	*out = (struct procfs_map){
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.inode = map->path[0] ? core->firsts[index] + 1 : 0,
		.readable = map->readable || map->listed,
		.writable = map->writable,
		.executable = is_code(core, map),
		.deleted = map->path[procfs_path_size(map->path)],
		.path = path,
	};
}

static int each_map(void *of, int (*visit)(const struct procfs_map *map, void *arg), void *arg)
{
	struct dump_core *core = of;
	struct procfs_map map;
	char path[PATH_MAX];
	int ret = 0;

	for (size_t i = 0; i < core->file.nr_maps && !ret; i++) {
		tell_map(core, i, path, &map);
		ret = visit(&map, arg);
	}
	return ret;
}

static int open_map(void *of, const struct procfs_map *map)
{
	const struct dump_core *core = of;

	for (size_t i = 0; i < core->file.nr_maps; i++) {
		if (core->file.maps[i].start == map->start)
			return open_path(core, core->file.maps[i].path);
	}
	return -ENOENT;
}

static int each_task(void *of, int (*visit)(pid_t tid, void *arg), void *arg)
{
	const struct dump_core *core = of;
	int ret = 0;

	for (size_t i = 0; i < core->file.nr_threads && !ret; i++)
		ret = visit(core->file.threads[i].tid, arg);
	return ret;
}

/* A thread's TID or thread pointer, and its index. */
struct thread_key {
	uint64_t key;
	size_t index;
};

static int index_threads(struct dump_core *core)
{
	bool fresh;

	intern_init(&core->by_tid, sizeof(struct thread_key), sizeof(uint64_t));
	intern_init(&core->by_pointer, sizeof(struct thread_key), sizeof(uint64_t));
	for (size_t i = 0; i < core->file.nr_threads; i++) {
		const struct core_thread *thread = &core->file.threads[i];
		const struct thread_key tid = {(uint64_t)thread->tid, i}, id = {thread->thread_pointer, i};

		if (intern_add(&core->by_tid, &tid, &fresh) == INTERN_NONE ||
		    intern_add(&core->by_pointer, &id, &fresh) == INTERN_NONE)
			return -ENOMEM;
	}
	return 0;
}

static const struct core_thread *look_up(const struct dump_core *core, const struct intern *table, uint64_t key)
{
	uint32_t i = intern_find(table, &key);

	return i == INTERN_NONE ? NULL : &core->file.threads[((struct thread_key *)intern_item(table, i))->index];
}

static const struct core_thread *find_thread(const struct dump_core *core, pid_t tid)
{
	return look_up(core, &core->by_tid, (uint64_t)tid);
}

/* Returns the system call in which the thread slept, or -1. */
static int64_t call_of(const struct core_thread *thread)
{
	return thread->call >= 0 && dump_was_woken(PROCESS_SOURCE_PID, &thread->registers) ? thread->call : -1;
}

static int read_call(void *of, pid_t tid, struct procfs_call *out)
{
	const struct core_thread *thread = find_thread(of, tid);

	if (!thread)
		return -EAGAIN;
	*out = (struct procfs_call){.number = call_of(thread),
				    .args = {thread->args[0], thread->args[1], thread->args[2], thread->args[3]},
				    .stack_pointer = unwind_registers_from(&thread->registers).values[UNWIND_SP]};
	return out->number < 0 ? -EAGAIN : 0;
}

pid_t dump_core_find_thread(const struct dump_core *core, uint64_t thread_pointer)
{
	const struct core_thread *thread = thread_pointer ? look_up(core, &core->by_pointer, thread_pointer) : NULL;

	return thread ? thread->tid : 0;
}

bool dump_core_registers(const struct dump_core *core, pid_t tid, struct unwind_registers *out)
{
	const struct core_thread *thread = find_thread(core, tid);

	if (thread)
		*out = unwind_registers_from(&thread->registers);
	return thread;
}

bool dump_core_has_stack(const struct dump_core *core, pid_t tid)
{
#if defined(__x86_64__)
	const struct core_thread *thread = find_thread(core, tid);
	uint64_t self;

	/* System V ABI, AMD64 supplement, ELF Handling For Thread-Local Storage: %fs:0 is the address of itself. */
	return !thread || !thread->thread_pointer ||
	       (!remote_read(PROCESS_SOURCE_PID, thread->thread_pointer, &self, sizeof(self)) &&
		self == thread->thread_pointer);
#else
	(void)core;
	(void)tid;
	return true;
#endif
}

enum dump_stopped dump_core_stopped(const struct dump_core *core, pid_t tid)
{
	const struct core_thread *thread = find_thread(core, tid);

	return thread && call_of(thread) >= 0 ? DUMP_STOPPED_ASLEEP : DUMP_STOPPED_RUNNING;
}

/* The file of the mapping in which the program began; the loader's own first one, if the core does not tell. */
static void find_exe(struct dump_core *core)
{
	for (size_t i = 0; i < core->file.nr_maps; i++) {
		const struct core_map *map = &core->file.maps[i];

		if (!map->path[0] || procfs_path_size(map->path) >= sizeof(core->exe))
			continue;
		if (!core->exe[0] || (core->file.entry >= map->start && core->file.entry < map->end))
			snprintf(core->exe, sizeof(core->exe), "%.*s", (int)procfs_path_size(map->path), map->path);
	}
}

static int compare_paths(const void *a, const void *b, void *arg)
{
	const struct core_map *maps = arg;
	size_t one = *(const size_t *)a, other = *(const size_t *)b;

	return strcmp(maps[one].path, maps[other].path) ?: (one > other) - (one < other);
}

static int number_files(struct dump_core *core)
{
	size_t count = core->file.nr_maps, *order = malloc((count + 1) * sizeof(*order));

	core->firsts = malloc((count + 1) * sizeof(*core->firsts));
	core->fds = malloc((count + 1) * sizeof(*core->fds));
	if (!order || !core->firsts || !core->fds) {
		free(order);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		order[i] = i;
		core->fds[i] = NOT_OPEN;
	}
	for (size_t i = 0; i < FILES_OPEN; i++)
		core->opened[i] = NO_FILE;
	qsort_r(order, count, sizeof(*order), compare_paths, core->file.maps);
	for (size_t i = 0; i < count; i++) {
		bool same = i && !strcmp(core->file.maps[order[i - 1]].path, core->file.maps[order[i]].path);

		core->firsts[order[i]] = same ? core->firsts[order[i - 1]] : order[i];
	}
	free(order);
	return 0;
}

/* Makes a path that a helper can open. Returns NULL with one sentence in *error. */
static char *find_given(const char *path, struct error *error)
{
	char *real = realpath(path, NULL);

	if (!real)
		error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	return real;
}

static int open_core(struct dump_core *core, const struct dump_core_files *files, struct error *error)
{
	int fd = open(files->core, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;

	if (fd < 0)
		return error_set(error, -errno, "cannot open %s: %s", files->core, strerror(errno));
	err = core_file_open(fd, files->core, &core->file, error);
	close(fd);
	if (err)
		return err;
	if (files->executable && !(core->executable = find_given(files->executable, error)))
		return error->code;
	if (files->sysroot && !(core->sysroot = find_given(files->sysroot, error)))
		return error->code;
	core->name = strdup(files->core);
	if (!core->name || number_files(core) || index_threads(core))
		return error_set(error, -ENOMEM, "cannot read %s: %s", files->core, strerror(ENOMEM));
	return 0;
}

int dump_core_open(const struct dump_core_files *files, struct dump_core **out, struct error *error)
{
	struct dump_core *core = calloc(1, sizeof(*core));
	int err;

	*out = core;
	if (!core)
		return error_set(error, -ENOMEM, "cannot read %s: %s", files->core, strerror(ENOMEM));
	err = open_core(core, files, error);
	if (err)
		return err;
	find_exe(core);
	core->source = (struct process_source){
		.comm = core->file.comm,
		.exe = core->exe,
		.of = core,
		.read = read_core,
		.each_map = each_map,
		.open_map = open_map,
		.each_task = each_task,
		.call = read_call,
	};
	process_source_set(&core->source);
	helper_keep_open(core->file.fd);
	return 0;
}

int dump_core_check(const struct dump_core *core, struct error *error)
{
	if (!core_file_is_changed(&core->file))
		return 0;
	return error_set(
		error, -ESTALE,
		"%s was changed while it was read, so that what is shown of it may be wrong: dump it anew once "
		"it is whole",
		core->name);
}

void dump_core_close(struct dump_core *core)
{
	if (!core)
		return;
	process_source_set(NULL);
	core_file_close(&core->file);
	free(core->name);
	free(core->executable);
	free(core->sysroot);
	free(core->firsts);
	free(core->fds);
	intern_free(&core->by_tid);
	intern_free(&core->by_pointer);
	free(core);
}

struct dump_core_facts dump_core_facts(const struct dump_core *core)
{
	return (struct dump_core_facts){
		.file = core->name,
		.signal = core->file.signal,
		.signalled = core->file.signal ? core->file.threads[0].tid : 0,
		.has_address = core->file.has_address,
		.address = core->file.address,
		.missing = core->file.missing,
	};
}

const char *dump_core_signal_name(int signal, char *out, size_t size)
{
	const char *name = sigabbrev_np(signal);

	if (!name)
		return NULL;
	snprintf(out, size, "SIG%s", name);
	return out;
}
