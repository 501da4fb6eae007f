// SPDX-License-Identifier: Apache-2.0
/* Walks a path below a root directory. */
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

#include "base/path_walk.h"

/*
 * Most steps of a walk. ".." is walked from the root, since folders can be moved meanwhile, and ".." of a moved one may
 * lie outside.
 */
#define STEPS_MOST 4096

struct below {
	struct path_walk walk;
	int root, flags;
	char passed[2 * PATH_MAX]; /* names from the root to the folder, none of them a link: "/a/b" */
	unsigned steps;
	struct timespec placed;
	int found;
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Notes when the link or folder came to its place. */
static void note_place(struct below *b, const struct stat *st)
{
	if ((S_ISLNK(st->st_mode) || is_later(&st->st_ctim, &st->st_mtim)) && is_later(&st->st_ctim, &b->placed))
		b->placed = st->st_ctim;
}

static int step_to(struct below *b, int folder)
{
	int err = path_walk_move(&b->walk, folder);
	struct stat st;

	if (err)
		return err;
	if (!fstat(folder, &st))
		note_place(b, &st);
	return ++b->steps > STEPS_MOST ? -ELOOP : 0;
}

static int to_root(struct below *b)
{
	b->passed[0] = '\0';
	return step_to(b, openat(b->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static int append(struct below *b, const char *name)
{
	size_t used = strlen(b->passed);

	return snprintf(b->passed + used, sizeof(b->passed) - used, "/%s", name) < (int)(sizeof(b->passed) - used)
		       ? 0
		       : -ENAMETOOLONG;
}

static int enter(struct path_walk *w, const char *name, int folder)
{
	struct below *b = w->context;

	return step_to(b, folder) ?: append(b, name);
}

static int go_up(struct path_walk *w)
{
	struct below *b = w->context;
	char names[sizeof(b->passed)], *end, *left;
	int err;

	memcpy(names, b->passed, strlen(b->passed) + 1);
	end = strrchr(names, '/');
	if (end)
		*end = '\0';
	err = to_root(b);
	for (char *name = strtok_r(names, "/", &left); name && !err; name = strtok_r(NULL, "/", &left))
		err = enter(w, name, openat(w->folder, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
	return err;
}

static int follow(struct path_walk *w, const char *name, int link, const struct stat *status)
{
	struct below *b = w->context;
	struct statfs system;
	int err;

	(void)name;
	note_place(b, status);
	/* Some links in procfs lead elsewhere than their text says. */
	if ((!*w->rest && b->flags & O_NOFOLLOW) || fstatfs(link, &system) || system.f_type == PROC_SUPER_MAGIC)
		return -ELOOP;
	err = path_walk_follow(w, link);
	return err > 0 ? to_root(b) : err;
}

static int open_last(struct path_walk *w, const char *name, int file)
{
	struct below *b = w->context;
	/* open(2) refuses O_PATH together with flags that do not apply to it. */
	int flags = b->flags | O_NOFOLLOW | O_CLOEXEC | (b->flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY);

	if (file < 0)
		return -ENOENT;
	close(file);
	b->found = openat(w->folder, name, flags);
	return b->found < 0 ? -errno : 1;
}

int path_below_open_placed(int root, const char *path, int flags, struct timespec *placed)
{
	static const struct path_walk_rules rules = {.up = go_up, .enter = enter, .link = follow, .arrive = open_last};
	struct below b = {.walk = {.rules = &rules, .context = &b, .folder = -1}, .root = root, .flags = flags};
	int err = to_root(&b);

	if (!err)
		err = path_walk(&b.walk, path);
	if (b.walk.folder >= 0)
		close(b.walk.folder);
	*placed = b.placed;
	return err < 0 ? err : b.found;
}

int path_below_open(int root, const char *path, int flags)
{
	return path_below_open_placed(root, path, flags, &(struct timespec){0});
}
