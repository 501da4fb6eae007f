// SPDX-License-Identifier: Apache-2.0
/* Reads the mappings of a process, and opens the files that are mapped. */
#include "base/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/activity.h"
#include "base/path_below.h"
#include "base/procfs_internal.h"
#include "base/process_source.h"

/* seq_file_path() in fs/proc/task_mmu.c escapes a newline alone: a backslash in a name stands for itself. */
static void unescape_newlines(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

size_t procfs_path_size(const char *path)
{
	static const char deleted[] = " (deleted)";
	const size_t size = strlen(path), end = strlen(deleted);

	return size >= end && !strcmp(path + size - end, deleted) ? size - end : size;
}

int procfs_parse_map(char *line, struct procfs_map *out)
{
	uint64_t dev_major, dev_minor;
	char *p = line;
	size_t len;

	*out = (struct procfs_map){.path = ""};
	if (!procfs_parse_number(&p, 16, &out->start) || !procfs_skip(&p, '-') ||
	    !procfs_parse_number(&p, 16, &out->end) || !procfs_skip(&p, ' '))
		return -EBADMSG;
	if (strnlen(p, 5) < 5 || out->end < out->start)
		return -EBADMSG;
	if ((p[0] != 'r' && p[0] != '-') || (p[1] != 'w' && p[1] != '-') || (p[2] != 'x' && p[2] != '-') ||
	    (p[3] != 'p' && p[3] != 's') || p[4] != ' ')
		return -EBADMSG;
	out->readable = p[0] == 'r';
	out->writable = p[1] == 'w';
	out->executable = p[2] == 'x';
	p += 5;
	if (!procfs_parse_number(&p, 16, &out->offset) || !procfs_skip(&p, ' ') ||
	    !procfs_parse_number(&p, 16, &dev_major) || !procfs_skip(&p, ':') ||
	    !procfs_parse_number(&p, 16, &dev_minor) || !procfs_skip(&p, ' ') ||
	    !procfs_parse_number(&p, 10, &out->inode))
		return -EBADMSG;
	if (dev_major > UINT32_MAX || dev_minor > UINT32_MAX)
		return -EBADMSG;
	out->dev_major = dev_major;
	out->dev_minor = dev_minor;
	if (!*p)
		return 0;
	if (*p != ' ')
		return -EBADMSG;
	p += strspn(p, " ");
	len = procfs_path_size(p);
	out->deleted = p[len];
	p[len] = '\0';
	unescape_newlines(p);
	out->path = p;
	return 0;
}

int procfs_each_map(pid_t pid, int (*visit)(const struct procfs_map *map, void *arg), void *arg)
{
	const struct process_source *source = process_source_of(pid);
	struct procfs_map map;
	char path[64], *line = NULL;
	size_t size = 0;
	int ret = 0;
	ssize_t n;
	FILE *file;

	if (source)
		return source->each_map(source->of, visit, arg);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	while (!ret && (n = getline(&line, &size, file)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		ret = procfs_parse_map(line, &map);
		if (!ret)
			ret = visit(&map, arg);
		errno = 0;
	}
	/* getline() also stops for lack of memory. */
	if (!ret && !feof(file))
		ret = errno ? -errno : -EIO;
	free(line);
	fclose(file);
	return ret;
}

/* Reopens an O_PATH descriptor (consumed) for reading, if it is a regular file's. */
static int reopen_regular(int handle, struct stat *st)
{
	char path[64];
	int fd;

	if (handle < 0)
		return -errno;
	if (fstat(handle, st)) {
		fd = -errno;
	} else if (!S_ISREG(st->st_mode)) {
		fd = -ENOEXEC;
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			fd = -errno;
	}
	close(handle);
	return fd;
}

struct own_map {
	uintptr_t addr;
	const struct procfs_map *wanted;
	bool same;
};

static int compare_own_map(const struct procfs_map *map, void *arg)
{
	struct own_map *own = arg;

	if (own->addr < map->start || own->addr >= map->end)
		return 0;
	own->same = map->inode == own->wanted->inode && map->dev_major == own->wanted->dev_major &&
		    map->dev_minor == own->wanted->dev_minor;
	return 1;
}

/*
 * Returns whether fd is the file that map shows. On btrfs and overlayfs stat and maps give different devices for one
 * file (and overlayfs, to 6.8, different inodes), so where they differ the file is mapped here and both maps are
 * compared. PROT_NONE: nothing is read, so nothing can fault.
 */
static bool is_mapped_file(int fd, const struct stat *st, const struct procfs_map *map)
{
	struct own_map own = {.wanted = map};
	void *page;

	if (st->st_ino == map->inode && major(st->st_dev) == map->dev_major && minor(st->st_dev) == map->dev_minor)
		return true;
	page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return false;
	own.addr = (uintptr_t)page;
	procfs_each_map(getpid(), compare_own_map, &own);
	munmap(page, 1);
	return own.same;
}

int procfs_open_root(pid_t pid, const char **path)
{
	char root_path[64], root_target[PATH_MAX];
	ssize_t n;
	int root;

	snprintf(root_path, sizeof(root_path), "/proc/%d/root", procfs_task(pid, NULL) ?: pid);
	/* maps shows a chroot's files from outside. */
	n = readlink(root_path, root_target, sizeof(root_target) - 1);
	if (n > 1 && !strncmp(*path, root_target, n) && (*path)[n] == '/')
		*path += n;
	root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* cppcheck-suppress resourceLeak; it is handed on. */
	return root < 0 ? -errno : root;
}

int procfs_open_below(int root, const char *path, struct stat *st, struct timespec *placed)
{
	int handle;

	activity_set(path);
	handle = path_below_open_placed(root, path, O_PATH, placed);
	return handle < 0 ? handle : reopen_regular(handle, st);
}

static int open_in_root(pid_t pid, const char *path, struct stat *st)
{
	int root = procfs_open_root(pid, &path), fd;

	if (root < 0)
		return root;
	fd = procfs_open_below(root, path, st, &(struct timespec){0});
	close(root);
	return fd;
}

int procfs_open_map(pid_t pid, const struct procfs_map *map)
{
	const struct process_source *source = process_source_of(pid);
	struct stat st = {0};
	char path[96];
	int fd, err;

	activity_set(map->path);
	if (source)
		return source->open_map(source->of, map);
	/* The kernel resolves this link through the mapping itself: deleted and replaced files work. */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, map->start, map->end);
	fd = reopen_regular(open(path, O_PATH | O_CLOEXEC), &st);
	if (fd >= 0)
		return fd;
	/* map_files needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN in the first user namespace. */
	err = fd;
	if (map->path[0] != '/')
		return err;
	if (map->deleted) {
		snprintf(path, sizeof(path), "/proc/%d/exe", pid);
		fd = reopen_regular(open(path, O_PATH | O_CLOEXEC), &st);
	} else {
		fd = open_in_root(pid, map->path, &st);
	}
	if (fd >= 0 && !is_mapped_file(fd, &st, map)) {
		close(fd);
		fd = -ESTALE;
	}
	return fd < 0 && err != -ENOENT && fd == -ENOENT ? err : fd;
}
