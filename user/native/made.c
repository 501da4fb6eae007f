// SPDX-License-Identifier: Apache-2.0
#include "native/made.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remote.h"
#include "cpython/structs.h"
#include "native/jit_files.h"
#include "native/jit_images.h"
#include "native/jitdump.h"
#include "native/mapped.h"
#include "native/perf_map.h"

#define WINDOW ((uint64_t)1 << 32)
/* Programs have no higher addresses; [vsyscall] has. */
#define ADDRESS_MAX ((uint64_t)1 << 47)

bool native_is_made_map(const struct procfs_map *map)
{
	return !map->inode && strcmp(map->path, NATIVE_VDSO) != 0 && map->end <= ADDRESS_MAX;
}

void native_describe_made(const struct procfs_map *map, struct native_mapped *out)
{
	uint64_t window = map->start & ~(WINDOW - 1);

	memset(out, 0, sizeof(*out));
	out->start = map->start;
	out->end = map->end < window + WINDOW ? map->end : window + WINDOW;
	out->offset = map->start - window;
	out->file.mtime_ns = window | 1;
	snprintf(out->path, sizeof(out->path), "%s", NATIVE_MADE);
}

void native_own_made(struct native_mapped *mapped, uint64_t life)
{
	if (native_is_made(mapped))
		mapped->file.size = life;
}

void native_made_about(const struct native_mapped *mapped, struct native_file *out)
{
	memset(out, 0, sizeof(*out));
	out->id = mapped->file;
	out->base = mapped->start - mapped->offset;
	out->nr_segments = 1;
	out->segments[0].size = WINDOW;
}

/*
 * Opens the process's perf map, which it writes by its PID as it sees it. Anybody may make a file of that name: it has
 * to be a file of the process's user, and at the path itself, which no link may lead elsewhere.
 */
static int open_perf_map(pid_t pid)
{
	struct procfs_status status;
	struct stat st, named;
	char name[64];
	const char *path = name;
	int root, fd;

	if (procfs_read_status(pid, &status))
		return -1;
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", status.inside);
	root = procfs_open_root(pid, &path);
	if (root < 0)
		return -1;
	fd = procfs_open_below(root, path, &st, &(struct timespec){0});
	if (fd >= 0 && (fstatat(root, path + 1, &named, AT_SYMLINK_NOFOLLOW) || named.st_ino != st.st_ino ||
			named.st_dev != st.st_dev || st.st_uid != status.uid || st.st_nlink != 1 ||
			st.st_size > NATIVE_PERF_MAP_MAX)) {
		close(fd);
		fd = -1;
	}
	close(root);
	return fd;
}

struct dump_search {
	pid_t pid;
	char name[32];
	int fd;
};

/* A JIT maps its dump as if it were code, so that profilers get to know of it. */
static int visit_dump(const struct procfs_map *map, void *arg)
{
	struct dump_search *search = arg;
	const char *name = strrchr(map->path, '/');

	if (!map->executable || !map->inode || !name || strcmp(name + 1, search->name) != 0)
		return 0;
	search->fd = procfs_open_map(search->pid, map);
	return search->fd >= 0;
}

/* Opens the process's jitdump. Its name has the PID as the process sees it. */
static int open_jitdump(pid_t pid)
{
	struct dump_search search = {.pid = pid, .fd = -1};
	struct procfs_status status;

	if (procfs_read_status(pid, &status))
		return -1;
	snprintf(search.name, sizeof(search.name), "jit-%d.dump", status.inside);
	procfs_each_map(pid, visit_dump, &search);
	return search.fd;
}

static void read_names(int fd, void (*find)(FILE *in, struct native_named *named, size_t count),
		       struct native_named *named, size_t count)
{
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

	if (in) {
		find(in, named, count);
		fclose(in);
	} else if (fd >= 0) {
		close(fd);
	}
}

static bool all_have_names(const struct native_named *named, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!named[i].size)
			return false;
	}
	return true;
}

/* Names what the process has registered with debuggers. */
static void read_registered(pid_t pid, struct native_named *named, size_t count)
{
	uint64_t lists[NATIVE_JIT_LISTS_MAX];
	size_t nr = native_jit_find_lists(pid, lists);

	for (size_t i = 0; i < nr; i++)
		native_jit_find(pid, lists[i], named, count);
}

static bool is_trampoline(pid_t pid, uint64_t address)
{
	static const char plain[] = CPYTHON_TRAMPOLINE_PLAIN, by_frame[] = CPYTHON_TRAMPOLINE_BY_FRAME;
	char code[sizeof(plain) - 1];

	return !remote_read(pid, address - 1, code, sizeof(code)) &&
	       (!memcmp(code, plain, sizeof(plain) - 1) || !memcmp(code, by_frame, sizeof(by_frame) - 1));
}

void native_find_made_names(pid_t pid, struct native_named *named, size_t count)
{
	pid = procfs_task(pid, NULL) ?: pid;
	read_names(open_jitdump(pid), native_jitdump_find, named, count);
	read_names(open_perf_map(pid), native_perf_map_find, named, count);
	/* Files are searched for the list, which takes some time. */
	if (!all_have_names(named, count))
		read_registered(pid, named, count);
	for (size_t i = 0; i < count; i++) {
		if (named[i].size || !is_trampoline(pid, named[i].address))
			continue;
		named[i].start = named[i].address;
		named[i].size = 1;
		snprintf(named[i].symbol, sizeof(named[i].symbol), "%strampoline", NATIVE_MADE_TRAMPOLINE);
	}
}
