// SPDX-License-Identifier: Apache-2.0
/* Walks a path step by step below a root directory. */
#include "base/path_below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Most links that are followed, the kernel's limit: path_resolution(7). */
#define LINKS_MOST 40
/*
 * Most steps of a walk. ".." is walked from the root, since folders can be moved meanwhile, and ".." of a moved one may
 * lie outside.
 */
#define STEPS_MOST 4096

struct walk {
	int root, folder;          /* folder: a descriptor of its own */
	char passed[2 * PATH_MAX]; /* names from the root to the folder, none of them a link: "/a/b" */
	char rest[2 * PATH_MAX];   /* the part of the path that is still to be walked */
	unsigned links, steps;
	struct timespec placed;
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Notes when the link or folder came to its place. */
static void note_place(struct walk *w, const struct stat *st)
{
	if ((S_ISLNK(st->st_mode) || is_later(&st->st_ctim, &st->st_mtim)) && is_later(&st->st_ctim, &w->placed))
		w->placed = st->st_ctim;
}

static int step_to(struct walk *w, int folder)
{
	struct stat st;

	if (folder < 0)
		return -errno;
	close(w->folder);
	w->folder = folder;
	if (!fstat(folder, &st))
		note_place(w, &st);
	return ++w->steps > STEPS_MOST ? -ELOOP : 0;
}

static int to_root(struct walk *w)
{
	w->passed[0] = '\0';
	return step_to(w, openat(w->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static int pass(struct walk *w, const char *name)
{
	/* O_DIRECTORY triggers mounts on the way (autofs), which O_PATH alone does not. */
	return step_to(w, openat(w->folder, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
}

static int append(struct walk *w, const char *name)
{
	size_t used = strlen(w->passed);

	return snprintf(w->passed + used, sizeof(w->passed) - used, "/%s", name) < (int)(sizeof(w->passed) - used)
		       ? 0
		       : -ENAMETOOLONG;
}

static int go_back(struct walk *w)
{
	char names[sizeof(w->passed)], *end, *left;
	int err;

	memcpy(names, w->passed, strlen(w->passed) + 1);
	end = strrchr(names, '/');
	if (end)
		*end = '\0';
	err = to_root(w);
	for (char *name = strtok_r(names, "/", &left); name && !err; name = strtok_r(NULL, "/", &left))
		err = pass(w, name) ?: append(w, name);
	return err;
}

/* Puts the text of a link before the rest. */
static int follow(struct walk *w, int link)
{
	char text[PATH_MAX], joined[sizeof(w->rest)];
	struct statfs system;
	ssize_t n;

	/* Some links in procfs lead elsewhere than their text says. */
	if (++w->links > LINKS_MOST || fstatfs(link, &system) || system.f_type == PROC_SUPER_MAGIC)
		return -ELOOP;
	n = readlinkat(link, "", text, sizeof(text) - 1);
	if (n <= 0)
		return n ? -errno : -ENOENT;
	text[n] = '\0';
	if (snprintf(joined, sizeof(joined), "%s%s", text, w->rest) >= (int)sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(w->rest, joined, strlen(joined) + 1);
	return text[0] == '/' ? to_root(w) : 0;
}

static int open_last(const struct walk *w, const char *name, int flags)
{
	int fd;

	/* open(2) refuses O_PATH together with flags that do not apply to it. */
	flags |= O_NOFOLLOW | O_CLOEXEC | (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY);
	fd = openat(w->folder, name, flags);
	/* cppcheck-suppress resourceLeak; it is handed on. */
	return fd < 0 ? -errno : fd;
}

/*
 * Walks one name of the path, the last or another one. Returns 0 to go on, 1 with the descriptor in *out, or negative
 * errno.
 */
static int step(struct walk *w, const char *name, bool last, int flags, int *out)
{
	struct stat st;
	int fd, err;

	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, ".."))
		return go_back(w);
	if (!last && !pass(w, name))
		return append(w, name);
	fd = openat(w->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		err = -errno;
	} else if (S_ISLNK(st.st_mode)) {
		note_place(w, &st);
		err = last && flags & O_NOFOLLOW ? -ELOOP : follow(w, fd);
	} else if (!last) {
		/* A folder here is one that may not be entered. */
		err = S_ISDIR(st.st_mode) ? -EACCES : -ENOTDIR;
	} else {
		*out = open_last(w, name, flags);
		err = *out < 0 ? *out : 1;
	}
	close(fd);
	return err;
}

int path_below_open_placed(int root, const char *path, int flags, struct timespec *placed)
{
	struct walk w = {.root = root, .folder = -1};
	int err, fd = -1;

	*placed = (struct timespec){0};
	if (!*path || strlen(path) >= PATH_MAX)
		return *path ? -ENAMETOOLONG : -ENOENT;
	memcpy(w.rest, path, strlen(path) + 1);
	err = to_root(&w);
	while (!err) {
		size_t begin = strspn(w.rest, "/"), length = strcspn(w.rest + begin, "/");
		char name[NAME_MAX + 1];

		if (!length) {
			fd = open_last(&w, ".", flags);
			err = fd < 0 ? fd : 1;
			break;
		}
		if (length > NAME_MAX) {
			err = -ENAMETOOLONG;
			break;
		}
		memcpy(name, w.rest + begin, length);
		name[length] = '\0';
		memmove(w.rest, w.rest + begin + length, strlen(w.rest + begin + length) + 1);
		/* "name/" is a folder. */
		err = step(&w, name, !w.rest[0], flags, &fd);
	}
	if (w.folder >= 0)
		close(w.folder);
	*placed = w.placed;
	return err < 0 ? err : fd;
}

int path_below_open(int root, const char *path, int flags)
{
	return path_below_open_placed(root, path, flags, &(struct timespec){0});
}
